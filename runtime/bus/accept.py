"""Accepting events: numbered in their lines and put into the outbox, in the caller's transaction."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from sqlalchemy.engine import Connection

from runtime.bus.delivery import Timer
from runtime.bus.event import Event, prepared
from runtime.bus.parts import Parts
from runtime.store import outbox, timers
from runtime.store.outbox import Row
from runtime.store.timers import Scheduled


def accept(connection: Connection, parts: Parts, events: Sequence[Event], at: float) -> list[Row]:
    """Accept events; what is to be sent after the commit."""
    given = outbox.numbers(connection, parts.team, [(e.correlation_id, e.sender, e.to) for e in events], at)
    rows = [
        Row(parts.names.stream(e.to, e.correlation_id), e.event_id, e.values(n), at)
        for e, n in zip(events, given, strict=True)
    ]
    outbox.put(connection, parts.team, rows)
    return rows


def row_of(parts: Parts, event: Event) -> Row:
    """An event as it goes onto its stream, with the number it has; it is anybody's to send."""
    return Row(parts.names.stream(event.to, event.correlation_id), event.event_id, event.values())


def scheduled(timer: Timer, at: float) -> Scheduled:
    """A timer as the store keeps it."""
    body = asdict(prepared(timer.event, at))
    return Scheduled(key=timer.key, due=timer.due, every_s=timer.every_s, body=body)


def accept_due(connection: Connection, parts: Parts, now: float, limit: int) -> list[Row]:
    """Accept the events whose time has come, and set those that come again."""
    due = timers.waiting(connection, parts.team, now, limit)
    once = [t.key for t in due if not t.every_s]
    if once:
        timers.cancel(connection, parts.team, once)
    timers.schedule(connection, parts.team, [replace(t, due=t.after(now)) for t in due if t.every_s])
    return accept(connection, parts, [_event(t, now) for t in due], now) if due else []


def _event(timer: Scheduled, now: float) -> Event:
    """The event of one due time; one that comes again has an id, and a session if it named none, for each time."""
    event = Event(**timer.body)
    if not timer.every_s:
        return replace(event, timestamp=now)
    own = f"{event.event_id}-{timer.due:.0f}"
    alone = event.correlation_id == event.event_id
    return replace(event, event_id=own, correlation_id=own if alone else event.correlation_id, timestamp=now)
