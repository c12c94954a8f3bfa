"""Accepted events: numbered, kept until every group has confirmed them, handed to whoever sends them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select, text, update
from sqlalchemy.engine import Connection

from runtime.store.base import Clash
from runtime.store.tables import INBOX, OUTBOX, SEQUENCES

Line = tuple[str, str, str]
"""(session, sender, receiver): what one role says to another in a session is in order."""
CONFIRMED = ("done", "dead")
"""Outcomes in the inbox after which a group needs an event no more."""
PUT = text(
    "INSERT INTO outbox (team, stream, event_id, body, entry, at, sent) "
    "VALUES (:team, :stream, :event_id, :body, '', :at, :at)"
)
NUMBER = text(
    "INSERT INTO sequences (team, session, sender, receiver, last, at) "
    "VALUES (:team, :session, :sender, :receiver, :last, :at) "
    "ON CONFLICT (team, session, sender, receiver) DO UPDATE SET last = excluded.last, at = excluded.at "
    "WHERE sequences.last = :before"
)
NEXT = text(
    "INSERT INTO sequences (team, session, sender, receiver, last, at) "
    "VALUES (:team, :session, :sender, :receiver, 1, :at) "
    "ON CONFLICT (team, session, sender, receiver) DO UPDATE SET last = sequences.last + 1, at = excluded.at "
    "RETURNING last"
)
FEW = 2
"""Lines up to which one statement each is quicker than looking first and writing all together."""
SENT = text("UPDATE outbox SET entry = :entry WHERE event_id = :event_id AND sent = :claim")
RELEASE = text("UPDATE outbox SET sent = 0 WHERE event_id = :event_id AND sent = :claim AND entry = ''")
_S, _O = SEQUENCES.c, OUTBOX.c
LASTS = (
    select(_S.session, _S.sender, _S.receiver, _S.last)
    .where(_S.team == bindparam("team_"), _S.session.in_(bindparam("sessions", expanding=True)))
    .order_by(_S.session, _S.sender, _S.receiver)
    .with_for_update()
)
UNSENT = select(func.count()).where(_O.team == bindparam("team_"), _O.entry == "")
OLD = select(_O.id).where(_O.team == bindparam("team_"), _O.entry == "", _O.sent < bindparam("before")).limit(1)


@dataclass(frozen=True, slots=True)
class Row:
    """An accepted event, as it goes onto its stream."""

    stream: str
    event_id: str
    values: tuple[str, ...]
    """The stream entry's values."""
    claim: float = 0.0
    """Since when it is its sender's to send (Unix time, s); whoever takes it over has a later one."""
    entry: str = ""
    """Its id in the stream; empty while it is unsent."""


def numbers(connection: Connection, team: str, lines: Sequence[Line], at: float) -> list[int]:
    """The next number in each line, in order; a line that occurs twice gets two.

    Raises:
        Clash: another transaction has given out the same.
    """
    if len(set(lines)) <= FEW:
        return [_next(connection, team, line, at) for line in lines]
    before = _lasts(connection, team, sorted({session for session, _, _ in lines}))
    given: list[int] = []
    last: dict[Line, int] = {}
    for line in lines:
        last[line] = last.get(line, before.get(line, 0)) + 1
        given.append(last[line])
    rows = [
        {
            "team": team,
            "session": s,
            "sender": f,
            "receiver": t,
            "last": n,
            "before": before.get((s, f, t), 0),
            "at": at,
        }
        for (s, f, t), n in sorted(last.items())
    ]
    if rows and connection.execute(NUMBER, rows).rowcount != len(rows):
        raise Clash("two transactions numbered the same line")
    return given


def _next(connection: Connection, team: str, line: Line, at: float) -> int:
    session, sender, receiver = line
    row = {"team": team, "session": session, "sender": sender, "receiver": receiver, "at": at}
    return connection.execute(NEXT, row).scalar_one()


def put(connection: Connection, team: str, rows: Sequence[Row]) -> None:
    """Accept events, each its sender's for a while. From now on they are not lost."""
    if rows:
        connection.execute(
            PUT,
            [
                {"team": team, "stream": r.stream, "event_id": r.event_id, "body": json.dumps(r.values), "at": r.claim}
                for r in rows
            ],
        )


def put_again(connection: Connection, team: str, row: Row) -> None:
    """Accept an event once more, such as a dead letter; with a claim of 0 it is anybody's to send."""
    connection.execute(OUTBOX.delete().where(OUTBOX.c.event_id == row.event_id))
    put(connection, team, [row])


def keeps(connection: Connection, event_id: str) -> bool:
    """Whether an accepted event is still kept."""
    return connection.execute(select(OUTBOX.c.id).where(OUTBOX.c.event_id == event_id)).first() is not None


def mark_sent(connection: Connection, rows: Sequence[Row]) -> None:
    """Note which events are on their streams, but for those that somebody else is to send by now."""
    told = sorted((r.event_id, r.entry, r.claim) for r in rows)
    if told:
        connection.execute(SENT, [{"event_id": e, "entry": entry, "claim": claim} for e, entry, claim in told])


def release(connection: Connection, rows: Sequence[Row]) -> None:
    """Give events that could not be sent to whoever can."""
    told = sorted((r.event_id, r.claim) for r in rows)
    if told:
        connection.execute(RELEASE, [{"event_id": e, "claim": claim} for e, claim in told])


def unsent(connection: Connection, team: str) -> int:
    """How many accepted events are on no stream yet."""
    return connection.execute(UNSENT, {"team_": team}).scalar_one()


def claim_unsent(connection: Connection, team: str, before: float, at: float, limit: int) -> list[Row]:
    """Take over events that nobody has tried to send since a time, oldest first."""
    c = OUTBOX.c
    old = (
        select(c.id, c.stream, c.event_id, c.body)
        .where(c.team == team, c.entry == "", c.sent < before)
        .order_by(c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    found = connection.execute(old).all()
    if found:
        connection.execute(update(OUTBOX).where(c.id.in_([r.id for r in found])).values(sent=at))
    return [Row(r.stream, r.event_id, tuple(json.loads(r.body)), at) for r in found]


def any_unsent(connection: Connection, team: str, before: float) -> bool:
    """Whether there is one that nobody has tried to send since a time."""
    return connection.execute(OLD, {"team_": team, "before": before}).first() is not None


def unsend(connection: Connection, team: str, event_ids: Sequence[str] | None = None) -> int:
    """Have events sent again: all that are unconfirmed, or these; how many."""
    c = OUTBOX.c
    which = [c.team == team] if event_ids is None else [c.team == team, c.event_id.in_(event_ids)]
    return connection.execute(update(OUTBOX).where(*which).values(entry="", sent=0)).rowcount


def unconfirmed(connection: Connection, team: str, before: float, limit: int) -> list[Row]:
    """Events that were sent before a time and are still kept, oldest first."""
    c = OUTBOX.c
    old = select(c.stream, c.event_id, c.entry).where(c.team == team, c.entry != "", c.sent < before).order_by(c.id)
    return [Row(r.stream, r.event_id, (), entry=r.entry) for r in connection.execute(old.limit(limit))]


def confirmed(connection: Connection, stream: str, groups: Sequence[str], limit: int) -> list[int]:
    """Row ids of events of a stream that every one of the groups has had, oldest first."""
    had = (
        select(func.count())
        .where(INBOX.c.event_id == OUTBOX.c.event_id, INBOX.c.grp.in_(groups), INBOX.c.outcome.in_(CONFIRMED))
        .scalar_subquery()
    )
    c = OUTBOX.c
    found = select(c.id).where(c.stream == stream, c.entry != "", had >= len(groups)).order_by(c.id).limit(limit)
    return list(connection.execute(found).scalars())


def forget(connection: Connection, ids: Sequence[int]) -> None:
    """Delete rows that nobody needs any more."""
    connection.execute(text("DELETE FROM outbox WHERE id = :id"), [{"id": i} for i in ids])


def forget_up_to(connection: Connection, stream: str, first_left: str) -> int:
    """Delete what a stream no longer holds, confirmed or not: only where trimming is not to be safe."""
    c = OUTBOX.c
    rows = connection.execute(select(c.id, c.entry).where(c.stream == stream, c.entry != "")).all()
    gone = [r.id for r in rows if place(r.entry) < place(first_left)]
    if gone:
        forget(connection, gone)
    return len(gone)


def place(entry: str) -> tuple[int, int]:
    """An entry id as numbers, which compare as the stream orders them."""
    ms, _, count = entry.partition("-")
    return int(ms), int(count or 0)


def _lasts(connection: Connection, team: str, sessions: Sequence[str]) -> dict[Line, int]:
    found = connection.execute(LASTS, {"team_": team, "sessions": sessions})
    return {(r.session, r.sender, r.receiver): r.last for r in found}
