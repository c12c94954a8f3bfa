"""The history: every record that was committed, in order."""

from collections.abc import Sequence

from sqlalchemy import select, text
from sqlalchemy.engine import Connection

from runtime.records import RECORD, AnyRecord, Record
from runtime.store.tables import HISTORY

ADD = text(
    "INSERT INTO history (team, session, kind, event_id, body, at) "
    "VALUES (:team, :session, :kind, :event_id, :body, :at)"
)


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


def teams_of(connection: Connection, session: str) -> list[str]:
    """The teams that have records under a correlation id: one, unless somebody gave it out twice."""
    c = HISTORY.c
    return list(connection.execute(select(c.team).where(c.session == session).distinct().order_by(c.team)).scalars())


def _row(team: str, record: Record, event_id: str) -> dict[str, str | float]:
    return {
        "team": team,
        "session": record.correlation_id,
        "kind": getattr(record, "kind", ""),
        "event_id": event_id,
        "body": record.model_dump_json(),
        "at": record.at,
    }
