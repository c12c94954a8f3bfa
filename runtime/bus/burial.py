"""Giving events up: kept in the store with the reason, put onto the stream of dead letters, and acknowledged."""

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from runtime.bus.batch import Reader
from runtime.bus.intake import Entry
from runtime.bus.names import index
from runtime.bus.parts import Parts
from runtime.bus.waiting import Item
from runtime.store import dead, inbox
from runtime.store.dead import DeadLetter
from runtime.store.inbox import Had


class Burial:
    """One reader's way to give events up."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def bury(self, item: Item, reason: str, *, in_turn: bool) -> None:
        """Give an event up for good; ``in_turn``: it was the next in its line, which now goes on without it."""
        letter = self._letter(item.event.event_id, item.event.fields(), reason, item.attempt)
        had = Had(item.event.event_id, item.line, item.event.seq if in_turn else 0, item.replayed)
        self._keep(letter, had)
        self._put(item.entry.id, letter)

    def again(self, item: Item) -> None:
        """An event that was given up came again: see that its dead letter is on the stream."""
        group, parts = self._reader.seat.group, self._reader.parts
        kept = parts.held().read(lambda c: dead.letters(c, parts.team, item.event.event_id))
        for letter in kept:
            if letter.group == group:
                self._put(item.entry.id, letter)
                return
        self._reader.intake.acknowledge([item.entry.id])

    def undecodable(self, entry: Entry, event_id: str, reason: str) -> None:
        """Give up an entry that is no event."""
        fields = {
            k.decode(errors="backslashreplace"): v.decode(errors="backslashreplace") for k, v in entry.fields.items()
        }
        letter = self._letter(event_id, fields, reason, 1)
        self._keep(letter, Had(event_id, ("", "", ""), 0))
        self._put(entry.id, letter)

    def _letter(self, event_id: str, fields: Mapping[str, str], reason: str, attempts: int) -> DeadLetter:
        return DeadLetter(
            event_id=event_id,
            group=self._reader.seat.group,
            stream=self._reader.intake.stream,
            fields=fields,
            reason=reason,
            attempts=attempts,
            at=self._reader.parts.now(),
        )

    def _keep(self, letter: DeadLetter, had: Had) -> None:
        parts = self._reader.parts

        def keep(connection: Connection) -> None:
            if inbox.take(connection, letter.group, [had], "dead", letter.at):
                inbox.move(connection, parts.team, letter.group, [had], letter.at)
                dead.add(connection, parts.team, letter)

        if parts.store is not None:
            parts.store.write(keep)

    def _put(self, entry_id: str, letter: DeadLetter) -> None:
        put(self._reader.parts, letter, entry_id)


def put(parts: Parts, letter: DeadLetter, entry_id: str = "") -> None:
    """Put a dead letter onto its stream, once, and acknowledge the entry, if one is named, for the letter's group."""
    stream, place = letter.stream, parts.names.dead
    if parts.names.role_of(letter.stream):
        place = parts.names.dead_of(letter.stream)
    else:
        stream = place
    flat = [part for pair in told(letter).items() for part in pair]
    parts.scripts.bury(keys=[stream, place, index(place)], args=[letter.group, entry_id, key_of(letter), *flat])


def key_of(letter: DeadLetter) -> str:
    """What a dead letter is called in the index of its stream."""
    return f"{letter.event_id}/{letter.group}"


def told(letter: DeadLetter) -> dict[str, str]:
    """A dead letter's stream entry: the event's fields, and why it was given up."""
    return {
        **{k: v for k, v in letter.fields.items() if v},
        "event_id": letter.event_id,
        "stream": letter.stream,
        "group": letter.group,
        "reason": letter.reason,
        "attempts": str(letter.attempts),
        "died": f"{letter.at:.6f}",
    }
