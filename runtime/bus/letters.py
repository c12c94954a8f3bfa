"""Dead letters from the operator's side: what there is, and how it comes back to life."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Connection

from runtime.bus.accept import row_of
from runtime.bus.burial import put
from runtime.bus.errors import BusError, Undecodable
from runtime.bus.event import FIELDS, Event, decode
from runtime.bus.names import index
from runtime.bus.parts import Parts
from runtime.bus.relay import append
from runtime.store import dead, inbox, outbox
from runtime.store.dead import DeadLetter

PUBLISH = "publish"
"""The group of dead letters that were never accepted."""
PAGE = 1_000
"""Dead letters read at once."""


def letters(parts: Parts) -> list[DeadLetter]:
    """A team's dead letters, oldest first: the store's, or where there is none, those on the streams."""
    if parts.store:
        return parts.store.read(lambda c: dead.letters(c, parts.team))
    return [_letter(parts, e, fields) for stream in parts.names.all_dead() for e, fields in _entries(parts, stream)]


def replay(parts: Parts, event_id: str, group: str = "") -> int:
    """Give a dead letter's group the event once more, as if for the first time; how many groups get it.

    An event that never reached a stream is published anew.

    Raises:
        BusError: there is no such dead letter, or it is no event.
    """
    found = [x for x in letters(parts) if x.event_id == event_id and group in ("", x.group)]
    if not found:
        raise BusError(f"team {parts.team} has no dead letter {event_id!r}{f' of group {group!r}' if group else ''}")
    for letter in found:
        _revive(parts, letter, _event(parts, letter))
    return len(found)


def refuse(parts: Parts, event: Event, reason: str) -> None:
    """Keep an event that was not accepted, with the reason."""
    letter = DeadLetter(
        event_id=event.event_id,
        group=PUBLISH,
        stream=parts.names.stream(event.to, event.correlation_id),
        fields=event.fields(),
        reason=reason,
        attempts=1,
        at=parts.now(),
    )
    if parts.store:
        parts.store.write(lambda c: dead.add(c, parts.team, letter))
    put(parts, letter)


def _revive(parts: Parts, letter: DeadLetter, event: Event) -> None:
    row = row_of(parts, event)
    if parts.store is None:
        append(parts, [row])
    else:
        at = parts.now()

        def again(connection: Connection) -> None:
            inbox.reopen(connection, letter.event_id, letter.group, at)
            dead.remove(connection, letter.event_id, letter.group)
            outbox.put_again(connection, parts.team, row)

        parts.store.write(again)
    _unlist(parts, letter)


def _event(parts: Parts, letter: DeadLetter) -> Event:
    fields = {k.encode(): v.encode() for k, v in letter.fields.items() if k in FIELDS}
    try:
        event = decode("0-0", fields, letter.stream)
    except Undecodable as error:
        raise BusError(f"dead letter {letter.event_id} is no event and cannot be replayed: {error}") from None
    to = event.to or parts.names.role_of(letter.stream)
    if to not in parts.names.roles:
        raise BusError(f"dead letter {letter.event_id} is for {to!r}, which is no role of team {parts.team}")
    return replace(event, to=to, event_id=letter.event_id, attempt=event.attempt + 1)


def _unlist(parts: Parts, letter: DeadLetter) -> None:
    """Take it off its stream."""
    stream = letter.stream if parts.names.role_of(letter.stream) else ""
    place = parts.names.dead_of(stream) if stream else parts.names.dead
    key = f"{letter.event_id}/{letter.group}"
    entry = parts.client.hget(index(place), key)
    if entry:
        parts.client.xdel(place, entry)
    parts.client.hdel(index(place), key)


def _entries(parts: Parts, stream: str) -> list[tuple[bytes, Mapping[bytes, bytes]]]:
    return parts.client.xrange(stream, count=PAGE)


def _letter(parts: Parts, entry: bytes, fields: Mapping[bytes, bytes]) -> DeadLetter:
    text: dict[str, Any] = {k.decode(): v.decode(errors="replace") for k, v in fields.items()}
    return DeadLetter(
        event_id=text.get("event_id", ""),
        group=text.get("group", ""),
        stream=text.get("stream", parts.names.dead),
        fields={k: v for k, v in text.items() if k in FIELDS},
        reason=text.get("reason", ""),
        attempts=int(text.get("attempts", 0)),
        at=float(text.get("died", int(entry.partition(b"-")[0]) / 1e3)),
    )
