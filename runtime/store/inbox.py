"""What each group has had: which events, and up to which number in each line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select, text
from sqlalchemy.engine import Connection

from runtime.store.base import Clash
from runtime.store.outbox import Line
from runtime.store.tables import ATTEMPTS, CURSORS, DEAD, GROUPS, INBOX, OUTBOX, SEQUENCES

TAKE = text(
    "INSERT INTO inbox (event_id, grp, outcome, at) VALUES (:event_id, :grp, :outcome, :at) "
    "ON CONFLICT (event_id, grp) DO UPDATE SET outcome = excluded.outcome, at = excluded.at "
    "WHERE inbox.outcome = 'replay'"
)
MOVE = text(
    "INSERT INTO cursors (team, grp, session, sender, receiver, last, at) "
    "VALUES (:team, :grp, :session, :sender, :receiver, :last, :at) "
    "ON CONFLICT (team, grp, session, sender, receiver) DO UPDATE SET last = excluded.last, at = excluded.at "
    "WHERE cursors.last < excluded.last"
)
TRY = text(
    "INSERT INTO attempts (event_id, grp, attempts, at) VALUES (:event_id, :grp, 2, :at) "
    "ON CONFLICT (event_id, grp) DO UPDATE SET attempts = attempts.attempts + 1, at = excluded.at "
    "RETURNING attempts, error"
)
FAILED = text(
    "INSERT INTO attempts (event_id, grp, attempts, error, at) VALUES (:event_id, :grp, 1, :error, :at) "
    "ON CONFLICT (event_id, grp) DO UPDATE SET error = excluded.error, at = excluded.at"
)
REGISTER = text("INSERT INTO groups (team, role, grp) VALUES (:team, :role, :grp) ON CONFLICT DO NOTHING")
OUTCOMES = select(INBOX.c.event_id, INBOX.c.outcome).where(
    INBOX.c.event_id.in_(bindparam("ids", expanding=True)), INBOX.c.grp == bindparam("group")
)
LASTS = select(CURSORS.c.session, CURSORS.c.sender, CURSORS.c.receiver, CURSORS.c.last).where(
    CURSORS.c.team == bindparam("team_"),
    CURSORS.c.grp == bindparam("group"),
    CURSORS.c.session.in_(bindparam("sessions", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class Had:
    """An event that a group has handled."""

    event_id: str
    line: Line
    seq: int
    """Its number in the line; 0: it has none."""
    replayed: bool = False
    """It was a dead letter: its place in the line has long been passed."""


def outcomes(connection: Connection, group: str, event_ids: Sequence[str]) -> dict[str, str]:
    """What became of events in a group: ``done``, ``dead`` or ``replay``; those never had are missing."""
    found = connection.execute(OUTCOMES, {"ids": event_ids, "group": group})
    return {r.event_id: r.outcome for r in found}


def lasts(connection: Connection, team: str, group: str, sessions: Iterable[str]) -> dict[Line, int]:
    """The last number that a group has had, in every line of these sessions."""
    found = connection.execute(LASTS, {"team_": team, "group": group, "sessions": sorted(set(sessions))})
    return {(r.session, r.sender, r.receiver): r.last for r in found}


def take(connection: Connection, group: str, had: Sequence[Had], outcome: str, at: float) -> int:
    """Note events as had; how many were new. Fewer than all: another reader was faster."""
    rows = [{"event_id": h.event_id, "grp": group, "outcome": outcome, "at": at} for h in had]
    return connection.execute(TAKE, rows).rowcount if rows else 0


def move(connection: Connection, team: str, group: str, had: Sequence[Had], at: float) -> bool:
    """Move the lines' cursors forward; False when another reader had moved one of them."""
    last: dict[Line, int] = {}
    for h in had:
        if h.seq and not h.replayed:
            last[h.line] = max(h.seq, last.get(h.line, 0))
    rows = [
        {"team": team, "grp": group, "session": s, "sender": f, "receiver": t, "last": n, "at": at}
        for (s, f, t), n in sorted(last.items())
    ]
    return not rows or connection.execute(MOVE, rows).rowcount == len(rows)


def commit(connection: Connection, team: str, group: str, had: Sequence[Had], at: float) -> None:
    """Note events as done and move the cursors.

    Raises:
        Clash: another reader of the group had one of them in the meantime.
    """
    if take(connection, group, had, "done", at) != len(had) or not move(connection, team, group, had, at):
        raise Clash("another reader of the group was faster")


def confirm(connection: Connection, team: str, group: str, had: Had, at: float) -> bool:
    """Note an event as done if its line's cursor has passed it; whether it has."""
    session = had.line[0]
    if lasts(connection, team, group, [session]).get(had.line, 0) < had.seq:
        return False
    take(connection, group, [had], "done", at)
    return True


def begin_try(connection: Connection, event_id: str, group: str, at: float) -> tuple[int, str]:
    """Count a try that is not the first, before it begins: which one it is, and what the last failure said."""
    row = connection.execute(TRY, {"event_id": event_id, "grp": group, "at": at}).one()
    return row.attempts, row.error


def note_failure(connection: Connection, event_id: str, group: str, error: str, at: float) -> None:
    """Keep what a failed try said. The first try is counted here, all others were when they began."""
    connection.execute(FAILED, {"event_id": event_id, "grp": group, "error": error, "at": at})


def clear_tries(connection: Connection, group: str, event_ids: Sequence[str]) -> None:
    """Forget the tries of events that succeeded, or are to be tried anew."""
    if event_ids:
        connection.execute(delete(ATTEMPTS).where(ATTEMPTS.c.event_id.in_(event_ids), ATTEMPTS.c.grp == group))


def reopen(connection: Connection, event_id: str, group: str, at: float) -> None:
    """Let a group have an event that it had given up, once more, with all its tries."""
    again = text(
        "INSERT INTO inbox (event_id, grp, outcome, at) VALUES (:event_id, :grp, 'replay', :at) "
        "ON CONFLICT (event_id, grp) DO UPDATE SET outcome = 'replay', at = excluded.at"
    )
    connection.execute(again, {"event_id": event_id, "grp": group, "at": at})
    clear_tries(connection, group, [event_id])


def register(connection: Connection, team: str, role: str, group: str) -> None:
    """From now on this group must have had the role's events before they are forgotten."""
    connection.execute(REGISTER, {"team": team, "role": role, "grp": group})


def unregister(connection: Connection, team: str, role: str, group: str) -> None:
    """The group's word counts no more."""
    c = GROUPS.c
    connection.execute(delete(GROUPS).where(c.team == team, c.role == role, c.grp == group))


def groups(connection: Connection, team: str) -> dict[str, list[str]]:
    """The registered groups of each role."""
    c = GROUPS.c
    found: dict[str, list[str]] = {}
    for row in connection.execute(select(c.role, c.grp).where(c.team == team).order_by(c.role, c.grp)):
        found.setdefault(row.role, []).append(row.grp)
    return found


def prune(connection: Connection, inbox_before: float, sessions_before: float, limit: int = 5_000) -> int:
    """Forget what was had long ago and is kept nowhere any more; how many events. Dead letters stay."""
    kept = select(OUTBOX.c.event_id).where(OUTBOX.c.event_id == INBOX.c.event_id).exists()
    old = (
        select(INBOX.c.event_id, INBOX.c.grp)
        .where(INBOX.c.at < inbox_before, INBOX.c.outcome == "done", ~kept)
        .order_by(INBOX.c.at)
        .limit(limit)
    )
    rows = [{"event_id": r.event_id, "grp": r.grp} for r in connection.execute(old)]
    if rows:
        connection.execute(text("DELETE FROM inbox WHERE event_id = :event_id AND grp = :grp"), rows)
    _prune_lines(connection, sessions_before)
    dead = select(DEAD.c.event_id).where(DEAD.c.event_id == ATTEMPTS.c.event_id).exists()
    connection.execute(delete(ATTEMPTS).where(ATTEMPTS.c.at < sessions_before, ~dead))
    return len(rows)


def _prune_lines(connection: Connection, before: float) -> None:
    """Forget lines that have been silent everywhere: a number without its cursors would wait for ever, and be lost
    the other way round."""
    same = (
        (SEQUENCES.c.team == CURSORS.c.team)
        & (SEQUENCES.c.session == CURSORS.c.session)
        & (SEQUENCES.c.sender == CURSORS.c.sender)
        & (SEQUENCES.c.receiver == CURSORS.c.receiver)
    )
    moved = select(CURSORS.c.last).where(same, CURSORS.c.at >= before).exists()
    behind = select(CURSORS.c.last).where(same, CURSORS.c.last < SEQUENCES.c.last).exists()
    connection.execute(delete(SEQUENCES).where(SEQUENCES.c.at < before, ~moved, ~behind))
    numbered = select(SEQUENCES.c.last).where(same).exists()
    connection.execute(delete(CURSORS).where(CURSORS.c.at < before, ~numbered))
