"""Small things that tests of the bus share."""

from typing import Any

from runtime.bus import Delivery, Event, EventBus
from runtime.records import Json, StateChanged


def said(payload: Json, session: str = "s1", to: str = "ear", **fields: Any) -> Event:
    """An event of the caller."""
    return Event(to=to, sender="caller", correlation_id=session, payload=payload, **fields)


def note(delivery: Delivery, text: str) -> StateChanged:
    """A record that says what was done for which event."""
    return StateChanged(correlation_id=delivery.session, at=0.0, agent=text, before="", after="")


def noted(bus: EventBus, session: str = "s1") -> list[str]:
    """What was done in a session, as the history has it."""
    from runtime.store import history

    return [r.agent for r in bus.store.read(lambda c: history.of_session(c, bus.team, session))]


def writes_down(delivery: Delivery) -> None:
    """A handler that notes the payload."""
    delivery.record(note(delivery, str(delivery.event.payload)))
