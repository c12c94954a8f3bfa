"""A live team's figures: from the records that it commits and from what its parts tell, to a real Prometheus."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from assembly.stage_live import Place, Stage, agent_specs
from assembly.versions import load_version
from assembly.watching import watched_stage
from runtime.actor.attendant import Attendant
from runtime.records import (
    AgentStarted,
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Fault,
    Feedback,
    ModelCalled,
    Observed,
    Rewarded,
    StateChanged,
    ToolAnswered,
    ToolCall,
    ToolCalled,
)
from runtime.store import Store, feedback, history, open_store
from telemetry.follow import Follower
from telemetry.metrics.live import LiveFeed
from telemetry.metrics.port import MetricsPort
from telemetry.metrics.watching import LOOK_S, Watch
from telemetry.watched import Watched
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version
from tests.telemetry.prometheus import prometheus

TEAM = "shop"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/own.db")
    yield opened
    opened.close()


def page(port: MetricsPort) -> dict[str, float]:
    with urlopen(port.address, timeout=5) as answer:  # noqa: S310 - our own port
        lines = answer.read().decode().splitlines()
    return {n: float(v) for n, _, v in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def session(name: str = "s1") -> list[Any]:
    """A session of one agent: a model, a tool that costs, another that refuses; paid 2, and 3 when it is over."""
    who = {"correlation_id": name, "agent": "clerk"}
    call = ToolCall(tool="look")
    return [
        EpisodeOpened(correlation_id=name, at=10.0, team=TEAM, scenario="c1", seed=0, version="a" * 64),
        Observed(**who, turn=0, at=10.0, text="tea?"),
        ModelCalled(**who, turn=0, at=10.2, tokens_in=30, tokens_out=4, ms=200, model="p/m", cost_usd=0.5, attempts=3),
        Decided(**who, turn=0, at=10.2, call=call, probabilities=(0.5, 0.5)),
        ToolCalled(**who, turn=0, at=10.25, tool="look"),
        ToolAnswered(**who, turn=0, at=10.35, tool="look", ok=True, cost_usd=2.0),
        Rewarded(**who, turn=0, at=10.35, term="solved", value=2.0),
        Observed(**who, turn=1, at=11.0, text="tea!"),
        Decided(**who, turn=1, at=11.5, call=ToolCall(tool="gibberish-4711")),
        ToolAnswered(
            **who, turn=1, at=11.5, tool="gibberish-4711", ok=False, fault=Fault(code="unknown_tool", message="none")
        ),
        EpisodeEnded(correlation_id=name, at=12.0, outcome={}, success=True),
        Rewarded(**who, turn=1, at=12.0, term="solved", value=3.0),
    ]  # fmt: skip


def fed(port: MetricsPort, records: list[Any], store: Store) -> LiveFeed:
    store.write(lambda c: history.add(c, TEAM, [(r, "e") for r in records]))
    feed = LiveFeed(
        port.meters, "live", lambda t, s: store.read(lambda c: history.opening(c, t, s)), lambda _, v: v[:4]
    )
    follower = Follower(store)
    while news := follower.news():
        feed.take(news)
    feed.take(())
    return feed


def test_records_become_figures(store: Store) -> None:
    """Each figure is what the records say, in its unit; a made-up tool is no label."""
    with MetricsPort(0, "live") as port:
        feed = fed(port, session(), store)
        feed.feedback(TEAM, Feedback(correlation_id="s1", at=13.0, value=0.25))
        shown = page(port)
    assert shown['agent_step_latency_milliseconds_count{agent_id="clerk",phase="live"}'] == 2
    assert shown['agent_step_latency_milliseconds_sum{agent_id="clerk",phase="live"}'] == pytest.approx(350 + 500)
    assert shown['gen_ai_execute_tool_duration_seconds_sum{error_type="",gen_ai_tool_name="look"}'] == pytest.approx(
        0.1
    )
    assert shown['llm_token_usage_total{agent_id="clerk",direction="in"}'] == 30
    assert shown['model_retries_total{model="p/m"}'] == 2
    assert shown['agent_cost_total{agent_id="clerk",source="model"}'] == 0.5
    assert shown['tool_cost_total{tool="look"}'] == 2
    assert shown['tool_calls_total{outcome="unknown_tool",tool="none"}'] == 1
    assert shown['agent_policy_entropy{agent_id="clerk"}'] == pytest.approx(0.6931, abs=1e-4)
    assert shown['agent_reward_value{agent_id="clerk"}'] == 2.5
    assert shown['session_ended_total{outcome="success",team="shop",version="aaaa"}'] == 1
    assert shown['session_duration_seconds_sum{team="shop",version="aaaa"}'] == 2
    assert shown['session_reward{source="terms",team="shop",version="aaaa"}'] == 5
    assert shown['session_reward{source="feedback",team="shop",version="aaaa"}'] == 0.25
    assert not [name for name in shown if "4711" in name]


def test_a_missing_reward_is_counted_and_is_not_zero(store: Store) -> None:
    """The session's and the decision's means leave it out."""
    records = [
        r.model_copy(update={"value": None, "missing": "no verdict"}) if isinstance(r, Rewarded) else r
        for r in session()
    ]
    with MetricsPort(0, "live") as port:
        fed(port, records, store)
        shown = page(port)
    assert shown["rl_reward_missing_total"] == 2
    assert 'session_reward{source="terms",team="shop",version="aaaa"}' not in shown


def test_restarts_failures_and_redeliveries_are_counted(store: Store) -> None:
    """A second start is a restart; an agent in error is a failure."""
    start = AgentStarted(correlation_id="agent:clerk", at=1.0, agent="clerk", epoch=1, pid=1, cold_start_ms=80.0)
    again = start.model_copy(update={"epoch": 2, "cold_start_ms": 120.0})
    failed = StateChanged(correlation_id="s1", at=2.0, agent="clerk", before="running", after="error")
    with MetricsPort(0, "live") as port:
        fed(port, [start, failed, again], store)
        shown = page(port)
    assert shown['agent_starts_total{agent_id="clerk"}'] == 2
    assert shown['agent_restarts_total{agent_id="clerk"}'] == 1
    assert shown['agent_failures_total{agent_id="clerk"}'] == 1
    assert shown['agent_cold_start_milliseconds{agent_id="clerk"}'] == 120


def test_a_session_that_began_before_is_counted_under_its_version(store: Store) -> None:
    """Who begins to follow in the middle of a session looks its opening up."""
    first, last = session()[:3], session()[3:]
    store.write(lambda c: history.add(c, TEAM, [(r, "e") for r in first]))
    follower = Follower(store, after=None)
    store.write(lambda c: history.add(c, TEAM, [(r, "e") for r in last]))
    with MetricsPort(0, "live") as port:
        feed = LiveFeed(
            port.meters, "live", lambda t, s: store.read(lambda c: history.opening(c, t, s)), lambda _, v: v[:4]
        )
        feed.take(follower.news())
        feed.take(())
        assert page(port)['session_ended_total{outcome="success",team="shop",version="aaaa"}'] == 1


def test_a_look_that_fails_is_said_once_and_tried_again(
    tmp_path: Path, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    """A bus that is away for a while costs its figures, nothing else."""
    tried: list[int] = []

    def look(_: object) -> None:
        tried.append(1)
        raise ConnectionError("no bus")

    with Watch(0, "live", tmp_path, looks=[look]) as watch:
        wait_until(lambda: len(tried) >= 2, "another try", 4 * LOOK_S)
        assert page(watch.port)['process_memory_bytes{part="live"}'] > 1e6
    assert len([r for r in caplog.records if "no bus" in r.getMessage()]) == 1


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("version")
    fresh_version(directory)
    return directory


def test_a_live_team_is_read_by_prometheus(version: Path, tmp_path: Path, wait_until: WaitUntil) -> None:
    """Real bus, store and roles: sessions, decisions, streams and the store's log, as a real Prometheus has them."""
    place, loaded = Place.under(tmp_path / "live"), load_version(version)
    watched = Watched(targets=tmp_path / "targets", port=0)
    source = loaded.team.generate
    assert source is not None
    with Stage(place, loaded) as stage, watched_stage(stage.bus.store, watched, stage.bus.stats):
        hosts = [Attendant(s, s.bus) for s in agent_specs(place, version, loaded).values()]
        try:
            with prometheus(tmp_path / "prometheus", [watched.targets]) as seen:
                assert len(list(stage.run([source("eval", 2, k) for k in range(30)]))) == 30
                feedback_given = Feedback(correlation_id="x", at=1.0, value=1.0)
                stage.bus.store.write(lambda c: feedback.add(c, loaded.team.name, feedback_given))
                wait_until(lambda: seen.value("sum(session_ended_total)") == 30, "Prometheus to see all sessions")
                decided = sum(r.kind == "decided" for r in everything(stage))
                assert seen.value("sum(agent_decisions_total)") == decided
                assert seen.value('sum(agent_step_latency_milliseconds_count{phase="live"})') == decided
                wait_until(lambda: len(seen.series("bus_length")) == 4, "the bus' streams")
                assert {re.sub(r".*:", "", s["metric"]["stream"]) for s in seen.series("bus_length")} == {
                    "triage", "investigator", "resolver", "client"
                }  # fmt: skip
                assert seen.value("bus_dead_letters") == 0
                for name in ("store_wal_bytes", "agent_cold_start_milliseconds"):
                    assert (seen.value(name) or 0) > 0, name
                wait_until(lambda: seen.value('session_reward{source="feedback"}') == 1, "feedback to be counted")
        finally:
            for host in hosts:
                host.stop()
    assert not list(watched.targets.glob("*.json")), "the process took itself off the list"


def everything(stage: Stage) -> list[Any]:
    store = stage.bus.store
    assert store is not None
    return [n.record for n in store.read(lambda c: history.after(c, 0, 1_000_000))]
