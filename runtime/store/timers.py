"""Events to be published later."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, text
from sqlalchemy.engine import Connection

from runtime.store.tables import SCHEDULED

SET = text(
    "INSERT INTO scheduled (team, timer, due, every_s, body) VALUES (:team, :timer, :due, :every_s, :body) "
    "ON CONFLICT (team, timer) DO UPDATE SET due = excluded.due, every_s = excluded.every_s, body = excluded.body"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """An event that waits for its time."""

    key: str
    """Its name in the team."""
    due: float
    """Unix time, s."""
    every_s: float
    """The pause until it comes again (s); 0: it comes once."""
    body: Mapping[str, Any]
    """The event's fields."""

    def after(self, now: float) -> float:
        """When it is due next, times that were missed left out; 0: never."""
        if not self.every_s:
            return 0.0
        missed = max(0, int((now - self.due) // self.every_s))
        return self.due + (missed + 1) * self.every_s


def schedule(connection: Connection, team: str, timers: Sequence[Scheduled]) -> None:
    """Have events published later; a timer of the same name is replaced."""
    rows = [
        {"team": team, "timer": t.key, "due": t.due, "every_s": t.every_s, "body": json.dumps(dict(t.body))}
        for t in timers
    ]
    if rows:
        connection.execute(SET, rows)


def cancel(connection: Connection, team: str, keys: Sequence[str]) -> int:
    """Take timers back; how many there were."""
    c = SCHEDULED.c
    return connection.execute(delete(SCHEDULED).where(c.team == team, c.timer.in_(keys))).rowcount


def waiting(connection: Connection, team: str, before: float | None = None, limit: int = 10_000) -> list[Scheduled]:
    """The timers of a team, the one due first first; only those due before a time, if one is given."""
    c = SCHEDULED.c
    found = select(SCHEDULED).where(c.team == team).order_by(c.due, c.timer).limit(limit)
    if before is not None:
        found = found.where(c.due <= before).with_for_update(skip_locked=True)
    return [
        Scheduled(key=r.timer, due=r.due, every_s=r.every_s, body=json.loads(r.body)) for r in connection.execute(found)
    ]
