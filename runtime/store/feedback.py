"""Feedback: rewards from outside, for one decision or a whole session."""

from sqlalchemy import select
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
    found = select(c.decision, c.value, c.source, c.at).where(c.team == team, c.session == session).order_by(c.id)
    return [
        Feedback(
            correlation_id=session, decision_id=row.decision or None, value=row.value, source=row.source, at=row.at
        )
        for row in connection.execute(found)
    ]
