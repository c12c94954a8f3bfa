"""Feedback: rewards from outside, for one decision or a whole session."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from runtime.records import Feedback
from runtime.store.tables import FEEDBACK


def add(connection: Connection, team: str, feedback: Feedback) -> None:
    """Note a reward."""
    connection.execute(
        FEEDBACK.insert().values(
            team=team,
            session=feedback.correlation_id,
            decision=feedback.decision_id or "",
            value=feedback.value,
            source=feedback.source,
            at=feedback.at,
        )
    )


def of_session(connection: Connection, team: str, session: str) -> list[Feedback]:
    """What was said about a session and its decisions, in order."""
    c = FEEDBACK.c
    found = select(FEEDBACK).where(c.team == team, c.session == session).order_by(c.id)
    return [_said(row) for row in connection.execute(found)]


def after(connection: Connection, last: int, limit: int = 1000) -> list[tuple[int, str, Feedback]]:
    """What was said after a place in the table, over all teams, in order: its place, the team, and what was said."""
    found = select(FEEDBACK).where(FEEDBACK.c.id > last).order_by(FEEDBACK.c.id).limit(limit)
    return [(row.id, row.team, _said(row)) for row in connection.execute(found)]


def newest(connection: Connection) -> int:
    """The last place in the table; 0: nothing was said."""
    return connection.execute(select(func.max(FEEDBACK.c.id))).scalar() or 0


def _said(row: Any) -> Feedback:
    return Feedback(
        correlation_id=row.session,
        at=row.at,
        decision_id=row.decision or None,
        value=row.value,
        source=row.source,
    )
