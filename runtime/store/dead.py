"""Dead letters: events that a group has given up, kept with the reason until they are replayed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, text
from sqlalchemy.engine import Connection

from runtime.store.tables import DEAD

ADD = text(
    "INSERT INTO dead_letters (event_id, grp, team, stream, body, reason, attempts, at) "
    "VALUES (:event_id, :grp, :team, :stream, :body, :reason, :attempts, :at) "
    "ON CONFLICT (event_id, grp) DO UPDATE SET reason = excluded.reason, attempts = excluded.attempts, at = excluded.at"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """An event that was given up."""

    event_id: str
    group: str
    """The group that gave it up; ``publish`` or ``route`` where it never reached a stream."""
    stream: str
    """The stream it was on, or should have been."""
    fields: Mapping[str, str]
    """The stream entry."""
    reason: str
    attempts: int
    at: float
    """When (Unix time, s)."""


def add(connection: Connection, team: str, letter: DeadLetter) -> None:
    """Keep a dead letter."""
    row = {
        "event_id": letter.event_id,
        "grp": letter.group,
        "team": team,
        "stream": letter.stream,
        "body": json.dumps(dict(letter.fields), ensure_ascii=False),
        "reason": letter.reason,
        "attempts": letter.attempts,
        "at": letter.at,
    }
    connection.execute(ADD, row)


def letters(connection: Connection, team: str, event_id: str = "") -> list[DeadLetter]:
    """All of a team's, oldest first; or those of one event."""
    c = DEAD.c
    found = select(DEAD).where(c.team == team).order_by(c.at, c.event_id)
    return [_letter(r) for r in connection.execute(found.where(c.event_id == event_id) if event_id else found)]


def remove(connection: Connection, event_id: str, group: str) -> None:
    """Forget a dead letter."""
    connection.execute(delete(DEAD).where(DEAD.c.event_id == event_id, DEAD.c.grp == group))


def _letter(row: Any) -> DeadLetter:
    return DeadLetter(
        event_id=row.event_id,
        group=row.grp,
        stream=row.stream,
        fields=json.loads(row.body),
        reason=row.reason,
        attempts=row.attempts,
        at=row.at,
    )
