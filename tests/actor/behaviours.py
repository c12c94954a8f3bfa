"""Behaviours for the tests, made in the agents' own processes."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.actor.behaviour import Outcome, Send
from runtime.bus.event import Event


class Counter:
    """Counts what it is told in a session; does odd things when asked to."""

    schema = 1
    hoard: list[bytearray]

    def __init__(self) -> None:
        self.hoard = []

    def handle(self, state: Any, event: Event) -> Outcome:
        told: Mapping[str, Any] = event.payload
        count = (state or {"count": 0})["count"] + told.get("add", 0)
        if "raise" in told:
            raise ValueError(told["raise"])
        if "sleep" in told:
            time.sleep(told["sleep"])
        if "eat_mb" in told:
            self.hoard.append(bytearray(b"x" * int(told["eat_mb"] * 1e6)))
            time.sleep(10)
        sends = (Send(to=told["send"], payload={"add": count}),) if "send" in told else ()
        awaiting = {told["await"]: {"since": count}} if "await" in told else {}
        return Outcome(state={"count": count}, sends=sends, reply=count, awaiting=awaiting)

    def resume(self, session: str, awaiting: Mapping[str, Any]) -> Sequence[Event]:
        return [
            Event(to="clerk", correlation_id=session, event_id=f"resumed-{session}-{handle}", payload={"add": 100})
            for handle in awaiting
        ]


class Second:
    """The same with a state of another form."""

    schema = 2

    def handle(self, state: Any, event: Event) -> Outcome:
        total = (state or {"total": 0})["total"] + event.payload["add"]
        return Outcome(state={"total": total}, reply=total)


class Migrating(Second):
    """And one that can read the first form."""

    def migrate(self, state: Any, schema: int) -> Any:
        assert schema == 1
        return {"total": state["count"]}


def tell(add: int = 1, session: str = "s", event_id: str = "", **odd: Any) -> Event:
    return Event(to="clerk", correlation_id=session, event_id=event_id, payload={"add": add, **odd})
