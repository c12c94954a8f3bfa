"""One trace a session, from its records: what Phoenix and Langfuse read, whoever was killed, wherever it goes."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, messaging_attributes

from assembly.live import LiveRole
from assembly.stage_live import LiveMaker, Place, Stage, agent_specs
from assembly.versions import load_version
from runtime.actor.attendant import Attendant
from runtime.records import EpisodeOpened, Feedback, ModelCalled
from runtime.store import Store, feedback, history, open_store
from runtime.tracing import carried, current, model_call, parsed, root, span_id, trace_id
from telemetry.recorder import Thread
from telemetry.traces import exporting, names
from telemetry.traces.__main__ import main
from telemetry.traces.exporting import Exporting
from telemetry.traces.sinks import CollectorSink, FileSink
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version
from tests.telemetry.test_live_metrics import TEAM, session

ASKED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/own.db")
    yield opened
    opened.close()


def noted(store: Store, records: list[Any], event_id: str = "event") -> None:
    store.write(lambda c: history.add(c, TEAM, [(r, event_id) for r in records]))


def session_spans(store: Any, team: str, name: str) -> list[Any]:
    return list(exporting.session_spans(store, team, name))


def by_name(spans: list[Any]) -> dict[str, Any]:
    return {s.name: s for s in spans}


def test_ids_are_the_same_in_every_process() -> None:
    """They follow from the correlation id; whoever asks from outside keeps the own trace."""
    assert root("s1").trace == trace_id("s1") == root("s1").trace
    assert root("s1", ASKED).trace == "0af7651916cd43dd8448eb211c80319c"
    assert root("s1", ASKED).span == root("s1").span
    for wrong in (
        "",
        "garbage",
        ASKED.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        ASKED[:-3],
        "ff" + ASKED[2:],
    ):
        assert parsed(wrong) is None, wrong
    with carried(ASKED):
        assert current() == ASKED
    assert current() == ""


def test_a_chain_is_one_tree(store: Store) -> None:
    """Session, event, agent, then model and tool below it, in one trace, with times and rewards as recorded."""
    noted(store, session())
    spans = session_spans(store, TEAM, "s1")
    assert {s.context.trace_id for s in spans} == {int(trace_id("s1"), 16)}
    known = {s.context.span_id for s in spans}
    assert len(known) == len(spans)
    assert [s.name for s in spans if s.parent is None] == ["invoke_workflow shop"]
    assert all(s.parent.span_id in known for s in spans if s.parent is not None)
    named = by_name(spans)
    agent, model, tool = (
        next(s for s in spans if s.name == name) for name in ("invoke_agent clerk", "chat m", "execute_tool look")
    )
    assert agent.parent.span_id == named["process agent_events:shop:clerk"].context.span_id
    assert model.parent.span_id == tool.parent.span_id == agent.context.span_id
    assert (model.end_time - model.start_time) / 1e6 == pytest.approx(200)
    assert (tool.end_time - tool.start_time) / 1e6 == pytest.approx(100)
    assert agent.attributes[names.REWARD] == 2.0
    assert [(e.name, e.attributes[names.SCORE]) for e in agent.events] == [("gen_ai.evaluation.result", 2.0)]
    assert not named["execute_tool gibberish-4711"].status.is_ok
    assert named["invoke_workflow shop"].attributes[names.COST] == 2.5
    assert all(s.attributes[names.SESSION] == "s1" for s in spans)


def test_attributes_have_their_published_names(store: Store) -> None:
    """Every name of OpenTelemetry's and OpenInference's is in their packages, and each span says its kind."""
    noted(store, session())
    spans = session_spans(store, TEAM, "s1")
    published = {
        v
        for module in (gen_ai_attributes, messaging_attributes, SpanAttributes)
        for v in vars(module).values()
        if isinstance(v, str)
    }
    used = {k for s in spans for k in s.attributes} | {k for s in spans for e in s.events for k in e.attributes}
    assert {k for k in used if not k.startswith("repertory.")} <= published | {"error.type"}
    kinds = {k.value for k in OpenInferenceSpanKindValues}
    assert {s.attributes[SpanAttributes.OPENINFERENCE_SPAN_KIND] for s in spans} == {"CHAIN", "AGENT", "LLM", "TOOL"}
    assert {"CHAIN", "AGENT", "LLM", "TOOL", "EVALUATOR"} <= kinds
    operations = {o.value for o in gen_ai_attributes.GenAiOperationNameValues}  # pyright: ignore[reportDeprecated]
    assert {s.attributes[names.OPERATION] for s in spans if names.OPERATION in s.attributes} <= operations


def test_whoever_asked_over_http_has_the_session_in_the_own_trace(store: Store) -> None:
    """The session's span hangs under the caller's."""
    records = session()
    records[0] = records[0].model_copy(update={"traceparent": ASKED})
    noted(store, records, "client:1")
    spans = session_spans(store, TEAM, "s1")
    assert {f"{s.context.trace_id:032x}" for s in spans} == {"0af7651916cd43dd8448eb211c80319c"}
    assert f"{by_name(spans)['invoke_workflow shop'].parent.span_id:016x}" == "b7ad6b7169203331"
    assert by_name(spans)["turn clerk"].kind.name == "SERVER"


def test_feedback_hangs_under_its_decision(store: Store) -> None:
    """Given after the end, it is part of the same trace."""
    noted(store, session())
    said = Feedback(correlation_id="s1", at=20.0, value=0.5, decision_id="s1/clerk/0", source="ada")
    store.write(lambda c: feedback.add(c, TEAM, said))
    span = by_name(session_spans(store, TEAM, "s1"))["feedback"]
    assert span.parent.span_id == int(span_id("s1/clerk/0", "agent"), 16)
    assert span.attributes[names.SCORE] == 0.5


def test_the_file_is_otlp_json(store: Store, tmp_path: Path) -> None:
    """A line a request, ids in hexadecimal digits; it can be read back as OTLP; a torn line is written anew."""
    noted(store, session())
    file = tmp_path / "traces.jsonl"
    file.write_text('{"resourceSpans":[{"torn')
    assert main(["export", "--store", store.engine.url.render_as_string(), "--to", str(file)]) == 0
    (line,) = file.read_text().splitlines()
    spans = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert spans[0]["traceId"] == trace_id("s1")
    assert spans[0]["spanId"] == span_id("s1", "session")
    assert spans[0]["startTimeUnixNano"] == str(10 * 10**9)
    assert main(["export", "--store", "sqlite:////nowhere/store.db", "--to", str(file)]) == 3
    assert main(["export", "--store", store.engine.url.render_as_string(), "--to", str(file), "--since", "11"]) == 0
    assert len(file.read_text().splitlines()) == 1, "nothing was opened since"


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose zone is nine hours ahead of UTC."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(("since", "lines"), [("1970-01-01T00:00:09", 1), ("1970-01-01T00:00:11", 0)])
@pytest.mark.usefixtures("in_tokyo")
def test_a_moment_without_a_zone_is_utc(store: Store, tmp_path: Path, since: str, lines: int) -> None:
    """As everywhere else, whatever the machine's own zone is."""
    noted(store, session())
    file, url = tmp_path / "traces.jsonl", store.engine.url.render_as_string()
    assert main(["export", "--store", url, "--to", str(file), "--since", since]) == 0
    assert len(file.read_text().splitlines()) == lines


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.extend(s for r in request.resource_spans for c in r.scope_spans for s in c.spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        del format, args


def collecting(at: int = 0) -> Any:
    server: Any = HTTPServer(("127.0.0.1", at), _Collector)
    server.got = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_a_dead_collector_loses_nothing_and_is_said_once(
    hangs: bool, store: Store, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever commits is not slowed, there is one line about it, and everything comes once the collector is back."""
    monkeypatch.setattr("telemetry.traces.sinks.TIMEOUT_S", 0.3)
    caplog.set_level(logging.WARNING)
    dead = socket.create_server(("127.0.0.1", 0))
    at = dead.getsockname()[1]
    if not hangs:
        dead.close()
    with Thread("traces", Exporting(store, CollectorSink(f"http://127.0.0.1:{at}"))):
        took: list[float] = []
        for k in range(10):
            began = time.monotonic()
            noted(store, session(f"s{k}"))
            took.append(time.monotonic() - began)
        assert sorted(took)[5] < 0.2
        wait_until(lambda: "does not answer" in caplog.text, "the line about it")
        time_to_fail_again = time.monotonic() + 2.0
        wait_until(lambda: time.monotonic() > time_to_fail_again, "some more tries")
        assert caplog.text.count("does not answer") == 1
        dead.close()
        server = collecting(at)
        wait_until(lambda: len({s.trace_id for s in server.got}) == 10, "the traces to come after all")
    server.shutdown()
    server.server_close()


def test_who_was_killed_goes_on_where_he_was(store: Store, tmp_path: Path) -> None:
    """A new exporter of the same place exports what has ended since, and a session that was open meanwhile whole."""
    sink = FileSink(tmp_path / "traces.jsonl")
    noted(store, session("s1"))
    noted(store, session("s2")[:4])
    first = Exporting(store, sink)
    while first():
        pass
    noted(store, session("s2")[4:], "event-2")
    again = Exporting(store, sink)
    while again():
        pass
    lines = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    traces = [[s["traceId"] for s in line["resourceSpans"][0]["scopeSpans"][0]["spans"]] for line in lines]
    assert [set(t) for t in traces] == [{trace_id("s1")}, {trace_id("s2")}]
    assert len(traces[1]) >= len(traces[0])
    sink.close()


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("version")
    fresh_version(directory)
    return directory


class _Stumbling:
    """Makes a role that raises at its first event."""

    def __init__(self, maker: LiveMaker) -> None:
        self._maker = maker

    def __call__(self) -> LiveRole:
        role, left = self._maker(), [1]
        handle = role.handle

        def stumbling(state: Any, event: Any) -> Any:
            if left:
                left.pop()
                raise RuntimeError("stumbled")
            return handle(state, event)

        role.handle = stumbling
        return role


def test_a_chain_over_the_bus(version: Path, tmp_path: Path) -> None:
    """Agent after agent, each under the event that woke it, each event under the agent that sent it; a try that
    failed is a span of its own, and the one that succeeded links to it."""
    place, loaded = Place.under(tmp_path / "live"), load_version(version)
    generate = loaded.team.generate
    assert generate is not None
    with Stage(place, loaded) as stage:
        specs = agent_specs(place, version, loaded)
        specs["investigator"] = replace(specs["investigator"], make=_Stumbling(specs["investigator"].make))
        hosts = [Attendant(s, s.bus) for s in specs.values()]
        try:
            (ended,) = stage.run([generate("eval", 2, 0)])
        finally:
            for host in hosts:
                host.stop()
        spans = session_spans(stage.bus.store, loaded.team.name, ended.session)
    by_id = {s.context.span_id: s for s in spans}

    def above(span: Any) -> list[str]:
        return [span.name, *(above(by_id[span.parent.span_id]) if span.parent else [])]

    last = next(s for s in spans if s.name == "invoke_agent resolver")
    stream = "agent_events:supply_chain"
    assert above(last) == [
        "invoke_agent resolver",
        f"process {stream}:resolver", f"send {stream}:resolver",
        f"process {stream}:investigator", f"send {stream}:investigator",
        f"process {stream}:triage",
        "invoke_workflow supply_chain",
    ]  # fmt: skip
    tries = [s for s in spans if s.name == f"process {stream}:investigator"]
    failed, done = sorted(tries, key=lambda s: s.status.is_ok)
    assert not failed.status.is_ok
    assert [link.context.span_id for link in done.links] == [failed.context.span_id]
    assert done.attributes[names.ATTEMPTS] == 2


def test_a_model_is_told_which_span_asks(version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes out with the question is the context of the span that is exported for it."""
    loaded = load_version(version)
    seen: list[str] = []
    seat: Any = loaded.seats["triage"]
    decide = seat.decide

    def asking(turns: Any, greedy: bool) -> Any:
        seen.append(current())
        return decide(turns, greedy)

    monkeypatch.setattr(seat, "decide", asking)
    generate = loaded.team.generate
    assert generate is not None
    from assembly.live import CLIENT, opening
    from runtime.bus import Event

    role = LiveRole(loaded, "triage", lambda _: [])
    event = Event(
        to="triage", sender=CLIENT, correlation_id="s9", payload=opening(generate("eval", 2, 0)), traceparent=ASKED
    )
    outcome = role.handle(None, event)
    opened = outcome.records[0]
    assert isinstance(opened, EpisodeOpened)
    assert opened.traceparent == ASKED
    assert seen[0] == model_call(root("s9", ASKED), "s9/triage/0").header
    store = open_store(f"sqlite:///{tmp_path}/own.db")
    asked = ModelCalled(
        correlation_id="s9", agent="triage", turn=0, at=opened.at, tokens_in=1, tokens_out=1, ms=1, model="p/m"
    )
    noted(store, [*outcome.records, asked])
    exported = by_name(session_spans(store, TEAM, "s9"))["chat m"]
    store.close()
    told = parsed(seen[0])
    assert told is not None
    assert told.span == f"{exported.context.span_id:016x}"
