"""Tools that act outside: time limits, keys, undo, and answers that grow old."""

import threading
import time
from typing import Any

import pytest

from envs.restore import restored
from runtime.errors import TeamError
from runtime.records import Record, ToolCall, ToolUndone
from runtime.toolbox.undoing import compensate, to_undo
from runtime.tools import tool
from runtime.types import Outside
from tests.toolbox.desk import Desk, answered, rate, session


class Warehouse:
    """What is outside: shipments by key, and what was done in order."""

    def __init__(self) -> None:
        self.shipped: dict[str, str] = {}
        self.log: list[str] = []

    def ship(self, desk: Desk, to: str, key: str) -> dict[str, str]:
        """Ship a parcel."""
        self.shipped[key] = to
        self.log.append(f"ship {to}")
        return {"to": to}

    def call_back(self, desk: Desk, answer: Any, to: str, key: str) -> None:
        if to == "nowhere":
            raise LookupError("the carrier does not know it")
        self.log.append(f"call back {to}{'' if answer else ' unheard'}")
        self.shipped.pop(key, None)


@pytest.fixture
def warehouse() -> Warehouse:
    return Warehouse()


def shipping(warehouse: Warehouse, timeout_s: float = 5.0) -> Any:
    return tool(warehouse.ship, name="ship", outside=Outside(timeout_s=timeout_s, key="key", undo=warehouse.call_back))


def test_the_key_is_the_decision(warehouse: Warehouse) -> None:
    """A tool that declares a key is given the decision's id, which the agent neither sees nor chooses."""
    ship = tool(warehouse.ship, name="ship", outside=Outside(key="key"))
    assert set(ship.input_schema["properties"]) == {"to"}
    at_desk = session(ship)
    answered(at_desk, "ship", to="Rome")
    answered(at_desk, "ship", to="Oslo")
    assert list(warehouse.shipped) == [f"{at_desk.correlation_id}/clerk/{turn}" for turn in (0, 1)]
    forged = answered(at_desk, "ship", to="Bern", key="mine")
    assert forged.fault is not None
    assert forged.fault.code == "bad_arguments"


def test_a_key_without_a_place(warehouse: Warehouse) -> None:
    """A tool that asks for a key it has no parameter for is refused when the team is made."""
    with pytest.raises(TeamError, match="'token'"):
        tool(warehouse.ship, name="ship", outside=Outside(key="token"))


def test_a_tool_that_hangs() -> None:
    """A tool that does not answer in time is the agent's fault to deal with, not its end."""
    over = threading.Event()

    def hang(desk: Desk) -> str:
        """Never answer."""
        over.wait(30)
        return ""

    began = time.monotonic()
    answer = answered(session(tool(hang, outside=Outside(timeout_s=0.1))), "hang")
    over.set()
    assert time.monotonic() - began < 2.0
    assert answer.fault is not None
    assert answer.fault.message == "TimeoutError: hang: no answer within 0.1 s"


def test_undone_in_reverse(warehouse: Warehouse) -> None:
    """What a chain did outside is undone from the last to the first; each undo is recorded."""
    at_desk = session(shipping(warehouse))
    for place in ("Rome", "Oslo", "Bern"):
        answered(at_desk, "ship", to=place)
    noted: list[ToolUndone] = []
    assert compensate(at_desk.records, at_desk.team.tools, at_desk.world, noted.append, clock=lambda: 9.0)
    assert warehouse.log[3:] == ["call back Bern", "call back Oslo", "call back Rome"]
    assert [(u.turn, u.ok, u.at) for u in noted] == [(2, True, 9.0), (1, True, 9.0), (0, True, 9.0)]
    assert not warehouse.shipped


def test_after_a_crash(warehouse: Warehouse) -> None:
    """A compensation that was killed goes on where its notes end, and nothing is left or skipped."""
    at_desk = session(shipping(warehouse))
    for place in ("Rome", "Oslo", "Bern"):
        answered(at_desk, "ship", to=place)
    history: list[Record] = list(at_desk.records)

    def dies(undone: ToolUndone) -> None:
        history.append(undone)
        if undone.turn == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compensate(history, at_desk.team.tools, at_desk.world, dies)
    assert compensate(history, at_desk.team.tools, at_desk.world, history.append)
    assert warehouse.log[3:] == ["call back Bern", "call back Oslo", "call back Rome"]
    assert to_undo(history, at_desk.team.tools) == []


def test_an_undo_that_fails(warehouse: Warehouse) -> None:
    """An undo that fails is recorded with its reason, the others are done, and it is tried again the next time."""
    at_desk = session(shipping(warehouse))
    for place in ("Rome", "nowhere", "Bern"):
        answered(at_desk, "ship", to=place)
    history: list[Any] = list(at_desk.records)
    assert not compensate(history, at_desk.team.tools, at_desk.world, history.append)
    assert list(warehouse.shipped.values()) == ["nowhere"]
    failed = next(r for r in history if isinstance(r, ToolUndone) and not r.ok)
    assert failed.fault is not None
    assert "the carrier does not know it" in failed.fault.message
    assert [c.turn for c in to_undo(history, at_desk.team.tools)] == [1]


def test_an_effect_nobody_heard_of(warehouse: Warehouse) -> None:
    """A call that came too late to be heard is undone by its key, since its effect may have happened."""
    over = threading.Event()

    def ship(desk: Desk, to: str, key: str) -> dict[str, str]:
        """Ship a parcel, slowly."""
        warehouse.ship(desk, to, key)
        over.wait(30)
        return {"to": to}

    slow = tool(ship, outside=Outside(timeout_s=0.1, key="key", undo=warehouse.call_back))
    at_desk = session(slow)
    assert not answered(at_desk, "ship", to="Rome").ok
    over.set()
    assert compensate(at_desk.records, at_desk.team.tools, at_desk.world, lambda _: None)
    assert warehouse.log == ["ship Rome", "call back Rome unheard"]
    assert not warehouse.shipped


class Hours:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def test_answers_grow_old() -> None:
    """A role that demands a maximum age sees which answers are older, and may ask for them again."""
    time_of_day = Hours()
    at_desk = session(tool(rate), clock=time_of_day, max_age_s=60.0, repeats=False)
    answered(at_desk, "rate")
    time_of_day.s += 59
    assert at_desk.observe("clerk").mask[0] is False
    assert "stale" not in at_desk.observe("clerk").text
    answered(at_desk, "rate")  # refused: it would answer the same
    time_of_day.s += 2
    seen = at_desk.observe("clerk")
    assert seen.mask[0] is True
    assert "rate 2.0 (stale: read 61 s ago)" in seen.text
    assert answered(at_desk, "rate").value == 3.0
    assert "stale" in at_desk.observe("clerk").text
    assert at_desk.observe("clerk").mask[0] is False


def test_without_a_maximum_age() -> None:
    """A role that demands none sees the same text at any time: the clock does not reach its policy."""
    time_of_day = Hours()
    at_desk = session(tool(rate), clock=time_of_day, repeats=False)
    answered(at_desk, "rate")
    before = at_desk.observe("clerk")
    answered(at_desk, "rate")
    time_of_day.s += 1e6
    assert at_desk.observe("clerk").seen[: len(before.seen)] == before.seen
    assert at_desk.observe("clerk").mask[0] is False


def test_a_session_of_old_answers_is_restored() -> None:
    """A session with stale answers comes back from its records as it was."""
    time_of_day = Hours()
    at_desk = session(tool(rate), clock=time_of_day, max_age_s=60.0, repeats=False)
    for _ in range(3):
        at_desk.observe("clerk")
        at_desk.act("clerk", ToolCall(tool="rate"))
        time_of_day.s += 61
    back = restored(at_desk.team, at_desk.scenario, at_desk.records, clock=time_of_day)
    assert back.observe("clerk").text == at_desk.observe("clerk").text
    assert back.observe("clerk").mask == at_desk.observe("clerk").mask


def test_a_session_that_is_restored_does_nothing_twice(warehouse: Warehouse) -> None:
    """Bringing a session back from its records does not ship again, and shows the agent the answers from then."""
    at_desk = session(shipping(warehouse))
    answered(at_desk, "ship", to="Rome")
    back = restored(at_desk.team, at_desk.scenario, at_desk.records, clock=lambda: 0.0)
    assert back.observe("clerk").text == at_desk.observe("clerk").text
    assert warehouse.log == ["ship Rome"]
