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
from tests.proxy.house import TEAM, TOOL, Recording, calls, recording, words

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
