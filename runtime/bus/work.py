"""What a reader does with an event: skip it, park it, have it handled, try again, give it up."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runtime.bus.batch import Batch, Reader
from runtime.bus.burial import Burial
from runtime.bus.delivery import Delivery, Desk
from runtime.bus.errors import ContractBroken, NoSuchRole, Undecodable
from runtime.bus.event import decode, derived_id
from runtime.bus.intake import Entry
from runtime.bus.waiting import Item, Waiting
from runtime.errors import Fenced
from runtime.store import inbox, outbox
from runtime.store.inbox import Had

Handler = Callable[[Delivery], None]
HOPELESS = (ContractBroken, NoSuchRole)
"""Failures that another try would only repeat."""
LONGEST_RETRY_S = 5.0
"""The longest pause before another try (s)."""


@dataclass(slots=True)
class Counts:
    """What a reader has done since it began."""

    handled: int = 0
    skipped: int = 0
    """Events that had been handled before."""
    retried: int = 0
    parked: int = 0
    clashes: int = 0
    """Commits that another reader was faster than."""
    buried: int = 0


class Work:
    """One reader's work on its events."""

    def __init__(self, reader: Reader, handler: Handler) -> None:
        parts = reader.parts
        self._reader, self._handler = reader, handler
        self._parts, self._seat = parts, reader.seat
        self.waiting = Waiting()
        self.counts = Counts()
        self.mine: set[str] = set()
        """Entries on which this reader has the lease."""
        self._batch = Batch(reader)
        self._burial = Burial(reader)
        self._desk = Desk(
            names=parts.names, group=reader.seat.group, load=self._batch.state, agreed=parts.agreed, now=parts.now
        )

    def take(self, entries: Sequence[Entry]) -> list[Item]:
        """Read entries; left out are those held already, and those that are no events."""
        held = self.waiting.ids() if self.waiting else set[str]()
        found = [self._item(e) for e in entries if e.id not in held]
        return [i for i in found if i]

    def handle(self, items: Sequence[Item]) -> None:
        """Work on events in order, as one batch.

        Raises:
            Fenced: somebody else owns the role by now; nothing more may be done under this ownership.
        """
        if not items:
            return
        self.mine.update(i.entry.id for i in items)
        self._batch.look(items)
        for item in items:
            if self._batch.broken:
                self.waiting.retry(item, 0.0)
            elif self._due(item):
                self._run(item)
        self._flush()

    def resume(self, now: float) -> None:
        """Work on what was held back and is due: together what was only too early, one by one what is tried again."""
        due = self.waiting.due(now)
        self.handle([i for i in due if i.parked and not i.again])
        for item in due:
            if item.again or not item.parked:
                self.handle([item])

    def lost(self) -> None:
        """Redis was away: only what is held back is still known to be this reader's."""
        self.mine = self.waiting.ids()
        self._batch = Batch(self._reader)
        self._desk = replace(self._desk, load=self._batch.state)

    def _item(self, entry: Entry) -> Item | None:
        if not entry.fields:  # it is gone from the stream; where it is still needed, the outbox sends it again
            self._reader.intake.acknowledge([entry.id])
            return None
        stream = self._reader.intake.stream
        try:
            event = decode(entry.id, entry.fields, stream)
        except Undecodable as error:
            self._burial.undecodable(entry, f"hand-{derived_id(stream, entry.id)}", str(error))
            self.counts.buried += 1
            return None
        return Item(entry, event if event.to else replace(event, to=self._seat.role), again=entry.again)

    def _due(self, item: Item) -> bool:
        """Whether the handler is to be run now; if not, the event is settled, parked or given up."""
        outcome = self._batch.outcomes.get(item.event.event_id, "")
        item.replayed = outcome == "replay"
        if outcome == "dead":
            self._burial.again(item)
            self._let_go([item])
        elif outcome == "done" and self._parts.settings.safety.dedupe:
            self._skip(item)
        elif problem := self._refused(item):
            self._bury(item, problem)
        else:
            return item.replayed or self._in_order(item)
        return False

    def _refused(self, item: Item) -> str:
        """Why the event cannot be for this reader; empty: it can."""
        if item.event.to != self._seat.role:
            return f"it is for {item.event.to!r}, and was found on the stream of {self._seat.role!r}"
        try:
            self._parts.agreed.accepted(item.event)
        except ContractBroken as error:
            return str(error)
        return ""

    def _in_order(self, item: Item) -> bool:
        seq, last = item.event.seq, self._last(item)
        if self._parts.store is None or not seq or seq == last + 1:
            return True
        if seq <= last:
            if self._parts.settings.safety.dedupe:
                self._confirm(item)
                return False
            return True
        now = time.monotonic()
        if item.parked and now - item.parked > self._parts.settings.park_s and not self._expected(item):
            self._bury(item, f"out of order: number {seq} of its line came, number {last + 1} is missing")
            return False
        self.counts.parked += not item.parked
        self.waiting.park(item, now)
        return False

    def _last(self, item: Item) -> int:
        return self._batch.lasts.get(item.line, 0)

    def _expected(self, item: Item) -> bool:
        """Whether the bus itself numbered the event: then the one before it is sure to come."""
        return self._parts.held().read(lambda c: outbox.keeps(c, item.event.event_id))

    def _confirm(self, item: Item) -> None:
        """A number that was had: note the event as had, too, so that the outbox forgets it.

        It may be had by no more than this very batch, which is not committed yet, and may fail.
        """
        self._flush()
        had, at = Had(item.event.event_id, item.line, item.event.seq), self._parts.now()
        team, group = self._parts.team, self._seat.group
        if self._parts.held().write(lambda c: inbox.confirm(c, team, group, had, at)):
            self._skip(item)
        else:
            self.waiting.retry(item, 0.0)

    def _skip(self, item: Item) -> None:
        self.counts.skipped += 1
        self._batch.settle(item)
        self._let_go([item])

    def _run(self, item: Item) -> None:
        """Have the handler work on the event."""
        if item.again and not self._begun(item):
            return
        delivery, began = Delivery(item.event, item.attempt, self._desk), time.monotonic()
        try:
            self._handler(delivery)
        except Fenced:
            raise
        except HOPELESS as error:
            self._bury(item, str(error))
        except Exception as error:  # noqa: BLE001 - whatever the handler raises, the event must not be lost
            self._failed(item, f"{type(error).__name__}: {error}")
        else:
            self._batch.add(item, delivery, began)
            if self._batch.ripe:
                self._flush()

    def _begun(self, item: Item) -> bool:
        """Count a try before it begins, since it may kill the process; False when it is one too many."""
        store, group, at = self._parts.store, self._seat.group, self._parts.now()
        self.counts.retried += 1
        self._reader.intake.count("redeliveries")
        if store is None:
            item.attempt += 1
        else:
            item.attempt, item.error = store.write(lambda c: inbox.begin_try(c, item.event.event_id, group, at))
        most = self._parts.settings.max_attempts
        if item.attempt <= most:
            return True
        item.attempt = most
        self._bury(item, item.error or f"its reader died at each of {most} tries")
        return False

    def _failed(self, item: Item, error: str) -> None:
        """Note a failure; try again later, or give up."""
        store, group, at = self._parts.store, self._seat.group, self._parts.now()
        if store is not None:
            store.write(lambda c: inbox.note_failure(c, item.event.event_id, group, error, at))
        if item.attempt >= self._parts.settings.max_attempts:
            self._bury(item, error)
            return
        item.again = True
        pause = min(LONGEST_RETRY_S, self._parts.settings.retry_s * 2 ** (item.attempt - 1))
        self.waiting.retry(item, time.monotonic() + pause)

    def _bury(self, item: Item, reason: str) -> None:
        self._flush()  # first what came before it in its line
        if self._batch.broken:
            self.waiting.retry(item, 0.0)
            return
        in_turn = item.event.seq == self._last(item) + 1
        self._burial.bury(item, reason, in_turn=in_turn)
        self.counts.buried += 1
        if in_turn:
            self._batch.lasts[item.line] = item.event.seq
        self._let_go([item])

    def _flush(self) -> None:
        done, anew = self._batch.flush()
        self.counts.handled += len(done)
        self._let_go(done)
        self.counts.clashes += bool(anew)
        for item in anew:
            self.waiting.retry(item, 0.0)

    def _let_go(self, items: Sequence[Item]) -> None:
        for item in items:
            self.mine.discard(item.entry.id)
            self.waiting.moved(item.line)
