"""Temporal in the place of the bus: the same chain, the same records, whoever is killed."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from assembly.stage_live import Unfinished
from runtime.actor.agent import Reply
from runtime.bus import Event
from runtime.coordinator.temporal import Coordinator, available, reachable
from runtime.errors import Fenced, ServiceUnavailable
from runtime.records import Decided, EpisodeEnded, Record, ToolUndone
from tests.coordinator.conftest import Server
from tests.coordinator.shop import case, played, version_of

Tell = Callable[[Event], Reply]


def decided(records: Sequence[Record]) -> list[tuple[str, int, str]]:
    return [(r.agent, r.turn, r.call.model_dump_json()) for r in records if isinstance(r, Decided)]


def test_a_chain_runs_as_it_does_on_the_bus(temporal: Server, tmp_path: Path) -> None:
    """Each session ends once, with the decisions that its roles take anywhere; opened again, it is not played again."""
    ledger = tmp_path / "ledger"
    cases = [case(f"case-{k}") for k in range(5)]
    with played(f"sqlite:///{tmp_path}/store.db", version_of(ledger), temporal.address) as stage:
        ended = {e.scenario: e for e in stage.run(cases)}
        assert ended.keys() == {c.id for c in cases}
        assert all(e.success and e.outcome == {"case": name} for name, e in ended.items())
        for each in ended.values():
            records = stage.records(each.session)
            assert [(a, t) for a, t, _ in decided(records)] == [("buyer", k) for k in range(4)] + [("boss", 0)]
            assert sum(isinstance(r, EpisodeEnded) for r in records) == 1
        orders = ledger.read_text().splitlines()
        assert len(orders) == len(set(orders)) == 3 * len(cases)
        again = {e.scenario: e.session for e in stage.run(cases)}
        assert again == {name: e.session for name, e in ended.items()}
        assert ledger.read_text().splitlines() == orders
        assert stage.dead == 0


def test_a_new_store_has_sessions_of_its_own(temporal: Server, tmp_path: Path) -> None:
    """Made anew in the same place, it plays again: what the server remembers are sessions that it does not have."""
    ended: list[str] = []
    for _ in range(2):
        with played(f"sqlite:///{tmp_path}/store.db", version_of(tmp_path / "ledger"), temporal.address) as stage:
            (end,) = stage.run([case("one")])
            assert len(decided(stage.records(end.session))) == 5
            ended.append(end.session)
        for file in tmp_path.glob("store.db*"):
            file.unlink()
    assert len(set(ended)) == 2


def test_a_turn_whose_answer_is_lost_is_done_once(temporal: Server, tmp_path: Path) -> None:
    """The turn was committed and its process died before it could say so: asked again, nothing is done twice."""
    lost: set[str] = set()

    def between(event: Event, tell: Tell) -> Reply:
        reply = tell(event)
        if event.event_id not in lost:
            lost.add(event.event_id)
            raise ConnectionError("the answer is lost")
        assert reply.again
        return reply

    ledger = tmp_path / "ledger"
    with played(f"sqlite:///{tmp_path}/store.db", version_of(ledger), temporal.address, between) as stage:
        (ended,) = stage.run([case("one")])
        assert ended.success
        assert len(decided(stage.records(ended.session))) == 5
    assert len(lost) == 2
    assert len(ledger.read_text().splitlines()) == 3


def test_what_cannot_go_on_is_undone(temporal: Server, tmp_path: Path) -> None:
    """A role that fails at every try ends the session: orders are cancelled, the last first, and others go on."""
    ledger = tmp_path / "ledger"
    with played(f"sqlite:///{tmp_path}/store.db", version_of(ledger), temporal.address) as stage:
        ended = {e.scenario: e for e in stage.run([case("good"), case("never")])}
        assert ended["good"].success
        assert not ended["never"].success
        assert "the boss is not in" in ended["never"].outcome["given_up"]
        assert ended["never"].outcome["undone"] is True
        assert stage.dead == 1
        records = stage.records(ended["never"].session)
        assert [r.ok for r in records if isinstance(r, ToolUndone)] == [True, True, True]
        assert isinstance(records[-1], EpisodeEnded)
    cancelled = [line.split()[2] for line in ledger.read_text().splitlines() if line.startswith("cancel")]
    assert cancelled == ["rice", "salt", "tea"]


def test_a_fenced_process_leaves(temporal: Server, tmp_path: Path) -> None:
    """When another process has taken the roles over, this one does no more turns and says why."""

    def fenced(event: Event, tell: Tell) -> Reply:
        raise Fenced("actor:shop", 1, 2)

    with (
        played(f"sqlite:///{tmp_path}/store.db", version_of(tmp_path / "ledger"), temporal.address, fenced) as stage,
        pytest.raises(Fenced),
    ):
        list(stage.run([case("one")], silence_s=60))


def test_silence_is_said(temporal: Server, tmp_path: Path) -> None:
    """Turns that come to nothing for so long end the wait, not the session."""

    def away(event: Event, tell: Tell) -> Reply:
        raise ConnectionError("nobody is in")

    with (
        played(f"sqlite:///{tmp_path}/store.db", version_of(tmp_path / "ledger"), temporal.address, away) as stage,
        pytest.raises(Unfinished, match="1 sessions did not end"),
    ):
        list(stage.run([case("one")], silence_s=0.5))


def test_a_session_that_an_operator_terminates_is_given_up(temporal: Server, tmp_path: Path) -> None:
    """Its workflow is ended by hand: the session is over, what it had ordered is cancelled, and others are played."""

    def between(event: Event, tell: Tell) -> Reply:
        if event.to == "boss" and event.correlation_id == lost:
            asyncio.run(terminated(temporal.address, lost))
            raise ConnectionError("the boss is away")
        return tell(event)

    ledger = tmp_path / "ledger"
    with played(f"sqlite:///{tmp_path}/store.db", version_of(ledger), temporal.address, between) as stage:
        lost = stage.session_of(case("lost"))
        ended = {e.scenario: e for e in stage.run([case("lost"), case("good")])}
        assert ended["good"].success
        assert not ended["lost"].success
        assert "terminated" in ended["lost"].outcome["given_up"]
        assert isinstance(stage.records(lost)[-1], EpisodeEnded)
    assert sum(line.startswith(f"cancel {lost}/") for line in ledger.read_text().splitlines()) == 3


async def terminated(address: str, session: str) -> None:
    with suppress(RPCError):  # it has been, at the turn's last try
        await (await Client.connect(address)).get_workflow_handle(session).terminate("enough of it")


def test_no_server_is_said_with_what_to_do() -> None:
    """The address, what was seen, and how to start one."""
    with pytest.raises(ServiceUnavailable, match=r"127\.0\.0\.1:1\b.*temporal server start-dev"):
        reachable("127.0.0.1:1")
    with pytest.raises(ServiceUnavailable):
        Coordinator("127.0.0.1:1", "queue", tell=lambda e: Reply(value=None), give_up=lambda s, r: None)


def test_without_the_extra_the_pip_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporal is optional: who asks for it without having it is told what to install."""
    monkeypatch.setitem(sys.modules, "temporalio", None)
    with pytest.raises(ServiceUnavailable, match=r"pip install -e '\.\[temporal\]'"):
        available()
