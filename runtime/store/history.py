"""The history: every record that was committed, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.engine import Connection

from runtime.records import RECORD, AnyRecord, EpisodeOpened, Record
from runtime.store.tables import HISTORY

ADD = text(
    "INSERT INTO history (team, session, kind, event_id, body, at) "
    "VALUES (:team, :session, :kind, :event_id, :body, :at)"
)


@dataclass(frozen=True, slots=True)
class Noted:
    """A record in its place in the history."""

    id: int
    """Counts up from 1 over all teams; on PostgreSQL a smaller one may be committed later."""
    team: str
    event_id: str
    """The event whose handling the record belongs to; empty: none."""
    record: AnyRecord


def add(connection: Connection, team: str, records: Sequence[tuple[Record, str]]) -> None:
    """Append records, each with the id of the event whose handling it belongs to (empty: none)."""
    rows = [_row(team, record, event_id) for record, event_id in records]
    if rows:
        connection.execute(ADD, rows)


def of_session(connection: Connection, team: str, session: str) -> list[AnyRecord]:
    """The records of a session, in the order of their commits."""
    c = HISTORY.c
    found = select(c.body).where(c.team == team, c.session == session).order_by(c.id)
    return [RECORD.validate_json(body) for body in connection.execute(found).scalars()]


def noted_of_session(connection: Connection, team: str, session: str) -> list[Noted]:
    """As ``of_session``, with the event that each record belongs to."""
    c = HISTORY.c
    found = select(HISTORY).where(c.team == team, c.session == session).order_by(c.id)
    return [_noted(row) for row in connection.execute(found)]


def after(connection: Connection, last: int, limit: int) -> list[Noted]:
    """What came after a place in the history, over all teams, oldest first."""
    found = select(HISTORY).where(HISTORY.c.id > last).order_by(HISTORY.c.id).limit(limit)
    return [_noted(row) for row in connection.execute(found)]


def newest(connection: Connection) -> int:
    """The last place in the history; 0: it is empty."""
    return connection.execute(select(func.max(HISTORY.c.id))).scalar() or 0


def opening(connection: Connection, team: str, session: str) -> EpisodeOpened | None:
    """How a session began; None where that is not on record."""
    c = HISTORY.c
    mine = select(c.body).where(c.team == team, c.session == session, c.kind == "episode_opened").order_by(c.id)
    body = connection.execute(mine.limit(1)).scalar()
    return EpisodeOpened.model_validate_json(body) if body else None


def opened_since(connection: Connection, since: float) -> list[tuple[str, str]]:
    """Team and session of everything that was opened from then on (Unix time, s), oldest first."""
    c = HISTORY.c
    found = select(c.team, c.session).where(c.kind == "episode_opened", c.at >= since).order_by(c.id)
    return [(row.team, row.session) for row in connection.execute(found)]


def teams_of(connection: Connection, session: str) -> list[str]:
    """The teams that have records under a correlation id: one, unless somebody gave it out twice."""
    c = HISTORY.c
    return list(connection.execute(select(c.team).where(c.session == session).distinct().order_by(c.team)).scalars())


def _noted(row: Any) -> Noted:
    return Noted(row.id, row.team, row.event_id, RECORD.validate_json(row.body))


def _row(team: str, record: Record, event_id: str) -> dict[str, str | float]:
    return {
        "team": team,
        "session": record.correlation_id,
        "kind": getattr(record, "kind", ""),
        "event_id": event_id,
        "body": record.model_dump_json(),
        "at": record.at,
    }
