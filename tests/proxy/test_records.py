"""What goes through the proxy becomes the records of a team."""

import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest

from runtime.recorded import recorded_sessions, write_sessions
from runtime.recorded.parquet import read_sessions
from runtime.records import Decided, EpisodeEnded, EpisodeOpened, ModelCalled, Observed, Sent, ToolAnswered, ToolCall
from runtime.store import open_store
from telemetry.trace import main as trace
from tests.llm.providers import provider
from tests.proxy.house import TEAM, TOOL, Recording, calls, recording, whole, words

TRIAGE = {"role": "system", "content": "You are triage. Find out what is wrong."}
RESOLVER = {"role": "system", "content": "You are the resolver. Put it right."}
ASKS = {"role": "user", "content": "Where is order 1042?"}
TRACK = ToolCall(tool="track", args={"order": 1042})


def ask(client: openai.OpenAI, *messages: Any, **more: Any) -> Any:
    answer = client.chat.completions.with_raw_response.create(model="m", messages=messages, tools=[TOOL], **more)
    return answer.parse().choices[0].message, answer.headers["x-session-id"]


def two_nodes(recorded: Recording) -> str:
    """Triage tracks the parcel and hands over in words; the resolver, who reads the same transcript, answers."""
    client = recorded.client()
    first, session = ask(client, TRIAGE, ASKS)
    shared = [ASKS, first.model_dump(exclude_none=True)]
    shared.append({"role": "tool", "tool_call_id": "call-1", "content": json.dumps({"status": "lost"})})
    second, again = ask(client, TRIAGE, *shared)
    shared.append(second.model_dump(exclude_none=True))
    _, third = ask(client, RESOLVER, *shared)
    assert session == again == third
    return session


SCRIPT = (calls(("call-1", "track", {"order": 1042})), words("It is lost."), words("We send a new one."))


def test_a_conversation_of_two_roles_becomes_the_records_of_a_team(tmp_path: Path) -> None:
    """Who saw what, called what and was answered what, with turns, tokens and times, from its opening to its end."""
    with provider(*SCRIPT) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        session = two_nodes(recorded)
    made = recorded.records(session)
    opened, ended = made[0], made[-1]
    assert isinstance(opened, EpisodeOpened)
    assert (opened.team, opened.case) == (
        TEAM,
        {"visible": {"request": "Where is order 1042?"}, "truth": {}, "seed": 0},
    )
    assert isinstance(ended, EpisodeEnded)
    decided = [(r.agent, r.turn, r.call) for r in made if isinstance(r, Decided)]
    assert decided == [
        ("triage", 0, TRACK),
        ("triage", 1, ToolCall(tool="hand_over")),
        ("resolver", 0, ToolCall(tool="answer", args={"text": "We send a new one."})),
    ]
    answered = [(r.agent, r.turn, r.value) for r in made if isinstance(r, ToolAnswered)]
    assert answered == [("triage", 0, {"status": "lost"})]
    assert [r.payload for r in made if isinstance(r, Sent)] == ["It is lost.", "We send a new one."]
    asked = [r for r in made if isinstance(r, ModelCalled)]
    assert [(r.tokens_in, r.tokens_out, r.degraded) for r in asked] == [(11, 3, False)] * 3
    assert {r.model for r in asked} == {f"127.0.0.1:{upstream.server_address[1]}/m"}


def test_a_role_sees_the_lines_of_training(tmp_path: Path) -> None:
    """The case, its own tools' answers, and other roles' under their names: as ``envs.transcript`` writes them."""
    with provider(*SCRIPT) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        session = two_nodes(recorded)
    seen = [(r.agent, r.text.split("\n")) for r in recorded.records(session) if isinstance(r, Observed)]
    case, answer = 'case {"request": "Where is order 1042?"}', 'track {"order": 1042} {"status": "lost"}'
    assert seen == [("triage", [case]), ("triage", [case, answer]), ("resolver", [case, f"[triage] {answer}"])]


def test_trace_prints_a_recorded_conversation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its id, as it prints any session."""
    with provider(*SCRIPT) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        session = two_nodes(recorded)
    assert trace([session, "--store", f"sqlite:///{tmp_path / 's.db'}"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"chose +track\(order=1042\)", said), said
    assert "resolver/0" in said
    assert "3 decisions" in said


def test_a_recorded_conversation_is_exported(tmp_path: Path) -> None:
    """To the file that training reads, whole."""
    with provider(*SCRIPT) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        session = two_nodes(recorded)
    store = open_store(f"sqlite:///{tmp_path / 's.db'}")
    write_sessions(tmp_path / "s.parquet", recorded_sessions(store, TEAM))
    store.close()
    (found,) = read_sessions(tmp_path / "s.parquet")
    assert (found.session, found.truncated, found.reward) == (session, True, None)
    assert found.visible == {"request": "Where is order 1042?"}
    assert found.told() == recorded.records(session)


def test_several_calls_in_one_answer_are_as_many_decisions(tmp_path: Path) -> None:
    """Each with its own turn, to which its answer belongs, in whatever order the program sends them back."""
    both = calls(("c-1", "track", {"order": 1042}), ("c-2", "track", {"order": 7}))
    with provider(both, words("Done.")) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        said, session = ask(recorded.client(), TRIAGE, ASKS)
        found = [{"role": "tool", "tool_call_id": f"c-{n}", "content": f"{n}"} for n in (2, 1)]
        ask(recorded.client(), TRIAGE, ASKS, said.model_dump(exclude_none=True), *found)
    made = recorded.records(session)
    decided = [(r.turn, r.call) for r in made if isinstance(r, Decided)]
    assert decided[:2] == [(0, TRACK), (1, ToolCall(tool="track", args={"order": 7}))]
    assert decided[2:] == [(2, ToolCall(tool="hand_over"))]
    assert [(r.turn, r.value) for r in made if isinstance(r, ToolAnswered)] == [(1, 2), (0, 1)]
    assert [r.turn for r in made if isinstance(r, ModelCalled)] == [0, 2]


def test_a_call_that_cannot_be_read_is_a_malformed_one(tmp_path: Path) -> None:
    """As it is where a policy of ours writes one: a decision without a tool, and a fault."""
    function = {"name": "track", "arguments": '{"order": '}
    half = whole({"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}, "tool_calls")
    with provider(half) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        _, session = ask(recorded.client(), TRIAGE, ASKS)
    made = recorded.records(session)
    assert [r.call for r in made if isinstance(r, Decided)] == [ToolCall(tool="")]
    (answered,) = [r for r in made if isinstance(r, ToolAnswered)]
    assert answered.fault is not None
    assert (answered.ok, answered.fault.code) == (False, "malformed")


def test_what_others_say_is_seen(tmp_path: Path) -> None:
    """Another role's words under its name, unless they stand for a call; a user's later ones under his."""
    hurry = {"role": "user", "content": "and hurry"}
    said = (words("We look."), words("Over to you."), words("It is sent."))
    with provider(*said) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        first, session = ask(recorded.client(), RESOLVER, ASKS)
        shared = [ASKS, first.model_dump(exclude_none=True), hurry]
        second, _ = ask(recorded.client(), TRIAGE, *shared)
        ask(recorded.client(), RESOLVER, *shared, second.model_dump(exclude_none=True))
    seen = [r.text.split("\n")[1:] for r in recorded.records(session) if isinstance(r, Observed)]
    assert seen == [[], ['[resolver] "We look."', '[user] "and hurry"'], ['[user] "and hurry"']]


def test_words_that_are_an_object_are_the_calls_arguments(tmp_path: Path) -> None:
    """Of the call that they stand for."""
    with provider(words('{"to": "resolver"}')) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        _, session = ask(recorded.client(), TRIAGE, ASKS)
    decided = [r.call for r in recorded.records(session) if isinstance(r, Decided)]
    assert decided == [ToolCall(tool="hand_over", args={"to": "resolver"})]
