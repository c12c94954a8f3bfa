"""Events whose handlers have returned, until they are committed together and acknowledged."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.bus.accept import row_of
from runtime.bus.commit import Done, Seat, after, commit
from runtime.bus.delivery import Delivery
from runtime.bus.event import prepared
from runtime.bus.intake import Intake
from runtime.bus.parts import Parts
from runtime.bus.relay import Relay, append
from runtime.bus.waiting import Item
from runtime.store import inbox
from runtime.store.base import Clash
from runtime.store.outbox import Line
from runtime.store.snapshots import Snapshot, load


@dataclass(frozen=True, slots=True)
class Reader:
    """What the work of one reader is done with."""

    parts: Parts
    seat: Seat
    intake: Intake
    relay: Relay | None
    """None: there is no store, and events are sent at once."""


class Batch:
    """What is known about the events at hand, and what has been done with them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.outcomes: dict[str, str] = {}
        self.lasts: dict[Line, int] = {}
        self.broken = False
        """Another reader was faster: what is left must be looked at anew."""
        self._states: dict[str, Snapshot] = {}
        self._done: list[Done] = []
        self._settled: list[str] = []
        self._began = 0.0

    def look(self, items: Sequence[Item]) -> None:
        """Ask the store about the events."""
        self.broken, self._began = False, 0.0
        self.outcomes, self.lasts = {}, {}
        parts, group = self._reader.parts, self._reader.seat.group
        if parts.store is None:
            return
        ids = [i.event.event_id for i in items]
        sessions = {i.event.correlation_id for i in items if i.event.seq}
        self.outcomes, self.lasts = parts.store.read(
            lambda c: (inbox.outcomes(c, group, ids), inbox.lasts(c, parts.team, group, sessions))
        )

    def state(self, session: str) -> Snapshot | None:
        """The role's state in a session, with what this batch has done to it."""
        parts, role = self._reader.parts, self._reader.seat.stateful
        if session in self._states or parts.store is None:
            return self._states.get(session)
        return parts.store.read(lambda c: load(c, parts.team, role, session))

    def settle(self, item: Item) -> None:
        """Nothing is to be done for the event but to acknowledge it."""
        self._settled.append(item.entry.id)

    def add(self, item: Item, delivery: Delivery, began: float) -> None:
        """The handler has returned; commit when handlers have run long enough. ``began``: monotonic, s."""
        self._began = self._began or began
        self._done.append(Done(item, delivery))
        self.lasts[item.line] = max(self.lasts.get(item.line, 0), item.event.seq)
        if delivery.effects.kept:
            self._states[delivery.session] = after(delivery, self._reader.seat, self._reader.parts.now())

    @property
    def ripe(self) -> bool:
        """Whether a commit is due."""
        return bool(self._done) and time.monotonic() - self._began >= self._reader.parts.settings.flush_s

    def flush(self) -> tuple[list[Item], list[Item]]:
        """Commit and acknowledge: (the events that were done, those that must be done again)."""
        done, self._done, self._states, self._began = self._done, [], {}, 0.0
        items = [d.item for d in done]
        try:
            self._commit(done)
        except Clash:
            self.broken = True
            self._acknowledge([])
            return [], items
        self._acknowledge([i.entry.id for i in items])
        return items, []

    def _commit(self, done: Sequence[Done]) -> None:
        parts, seat, relay = self._reader.parts, self._reader.seat, self._reader.relay
        if not done:
            return
        at = parts.now()
        if parts.store is None or relay is None:
            rows = [row_of(parts, prepared(e, at)) for d in done for e in d.delivery.effects.sends]
            if rows:
                append(parts, rows)
            return
        relay.offer(parts.store.write(lambda c: commit(c, parts, seat, done, at)))

    def _acknowledge(self, ids: list[str]) -> None:
        settled, self._settled = self._settled, []
        self._reader.intake.acknowledge(ids + settled)
