"""Events that a person adds to the complete log by hand: brought to their role, or refused with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from runtime.bus.accept import accept
from runtime.bus.burial import put
from runtime.bus.errors import ContractBroken, Undecodable
from runtime.bus.event import Event, decode, derived_id
from runtime.bus.names import LOG, TEAMS
from runtime.bus.parts import Parts
from runtime.bus.refill import get_mark, set_mark
from runtime.store import dead, inbox
from runtime.store.dead import DeadLetter
from runtime.store.outbox import Row

AT_ONCE = 500
"""Entries of the log looked at in one round."""
ROUTE = "route"
"""The group of dead letters that never reached a stream."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry made by hand, and what becomes of it."""

    entry: str
    event: Event | None
    letter: DeadLetter | None


def register(parts: Parts) -> None:
    """Let every router know which team has which roles."""
    parts.client.hset(TEAMS, parts.team, ",".join(parts.names.roles))


def route(parts: Parts) -> tuple[list[Row], int]:
    """Go through the log from where the last round ended: (the events to be sent, how many entries were looked at)."""
    store, mark = parts.held(), f"{LOG}:{parts.team}:cursor"
    cursor = store.read(lambda c: get_mark(c, mark)) or "0-0"
    entries = parts.client.xrange(LOG, f"({cursor}" if cursor != "0-0" else "-", "+", count=AT_ONCE)
    if not entries:
        return [], 0
    by_hand = [(e.decode(), fields) for e, fields in entries if b"stream" not in fields]
    teams = {k.decode(): v.decode().split(",") for k, v in parts.client.hgetall(TEAMS).items()} if by_hand else {}
    found = [f for e, fields in by_hand if (f := _found(parts, e, fields, teams))]
    last = entries[-1][0].decode()

    def take(connection: Connection) -> list[Row]:
        set_mark(connection, mark, last)
        return _taken(connection, parts, found)

    rows = store.write(take)
    for f in found:
        if f.letter:
            put(parts, f.letter)
    return rows, len(entries)


def _taken(connection: Connection, parts: Parts, found: list[_Found]) -> list[Row]:
    """Accept what was not accepted before: the log's cursor may be lost with an emptied Redis, the ids stay."""
    ids = [f.event.event_id for f in found if f.event]
    had = inbox.outcomes(connection, ROUTE, ids)
    events = [f.event for f in found if f.event and f.event.event_id not in had]
    at = parts.now()
    inbox.take(connection, ROUTE, [inbox.Had(e.event_id, ("", "", ""), 0) for e in events], "done", at)
    for f in found:
        if f.letter:
            dead.add(connection, parts.team, f.letter)
    return accept(connection, parts, events, at)


def _found(parts: Parts, entry: str, fields: Mapping[bytes, bytes], teams: Mapping[str, list[str]]) -> _Found | None:
    """What becomes of an entry; None: it is another team's affair."""
    own = f"hand-{derived_id(LOG, entry)}"
    named = fields.get(b"team", b"").decode(errors="replace")
    to = fields.get(b"to", b"").decode(errors="replace")
    if ":" in to and not named:
        named, _, to = to.partition(":")
    able = [t for t in sorted(teams) if to in teams[t] and named in ("", t)]
    judge = able[0] if able else named if named in teams else min(teams, default=parts.team)
    if judge != parts.team:
        return None
    problem = _problem(to, named, able, teams)
    try:
        event = replace(decode(entry, fields, LOG), to=to, seq=0)
        if not problem:
            return _Found(entry, parts.agreed.checked(event), None)
    except (Undecodable, ContractBroken) as error:
        problem = problem or str(error)
    text = {k.decode(errors="backslashreplace"): v.decode(errors="backslashreplace") for k, v in fields.items()}
    letter = DeadLetter(
        event_id=text.get("event_id", own),
        group=ROUTE,
        stream=LOG,
        fields=text,
        reason=problem,
        attempts=1,
        at=parts.now(),
    )
    return _Found(entry, None, letter)


def _problem(to: str, named: str, able: list[str], teams: Mapping[str, list[str]]) -> str:
    if len(able) == 1:
        return ""
    if able:
        return f"teams {', '.join(able)} all have a role {to!r}: add a field team, or write TEAM:{to}"
    if not to:
        return "there is no field to: which role is it for?"
    known = "; ".join(f"{t}: {', '.join(roles)}" for t, roles in sorted(teams.items()) if named in ("", t, to))
    return f"there is no role {to!r}{f' in team {named!r}' if named else ''} ({known or 'no such team'})"
