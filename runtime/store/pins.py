"""Pins: the version that a session stays with, from its first turn to its end."""

from sqlalchemy import func, select, text, update
from sqlalchemy.engine import Connection

from runtime.store.tables import PINS

PIN = text(
    "INSERT INTO pins (team, session, version, at, ended) VALUES (:team, :session, :version, :at, 0) "
    "ON CONFLICT (team, session) DO UPDATE SET at = excluded.at RETURNING version"
)


def pin(connection: Connection, team: str, session: str, version: str, at: float) -> str:
    """Pin a session to a version; the version it is pinned to, which is an earlier one if it had one."""
    return connection.execute(PIN, {"team": team, "session": session, "version": version, "at": at}).scalar_one()


def pinned(connection: Connection, team: str, session: str) -> str | None:
    """The version that a session is pinned to; None: it is not."""
    c = PINS.c
    return connection.execute(select(c.version).where(c.team == team, c.session == session)).scalar()


def unpin(connection: Connection, team: str, session: str, at: float) -> None:
    """End a session: its pin is kept, but is open no more."""
    c = PINS.c
    connection.execute(update(PINS).where(c.team == team, c.session == session, c.ended == 0).values(ended=at))


def expire(connection: Connection, team: str, before: float, at: float) -> int:
    """End the sessions that were last seen before a time; how many."""
    c = PINS.c
    old = update(PINS).where(c.team == team, c.ended == 0, c.at < before).values(ended=at)
    return connection.execute(old).rowcount


def open_pins(connection: Connection, team: str) -> dict[str, int]:
    """How many sessions are open on each version."""
    c = PINS.c
    counts = select(c.version, func.count()).where(c.team == team, c.ended == 0).group_by(c.version)
    return {row[0]: row[1] for row in connection.execute(counts)}
