"""The state of each role in each session, as it was last committed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select, text
from sqlalchemy.engine import Connection

from runtime.records import Json
from runtime.store.base import Clash
from runtime.store.tables import SNAPSHOTS

SAVE = text(
    "INSERT INTO snapshots (team, role, session, body, schema, epoch, revision, at) "
    "VALUES (:team, :role, :session, :body, :schema, :epoch, 1, :at) "
    "ON CONFLICT (team, role, session) DO UPDATE SET body = excluded.body, schema = excluded.schema, "
    "epoch = excluded.epoch, revision = snapshots.revision + 1, at = excluded.at "
    "WHERE :expected < 0 OR snapshots.revision = :expected"
)
_C = SNAPSHOTS.c
LOAD = select(_C.body, _C.schema, _C.epoch, _C.revision, _C.at).where(
    _C.team == bindparam("team_"), _C.role == bindparam("role_"), _C.session == bindparam("session_")
)
"""Made once, as all that is asked often: making a statement takes longer than answering it."""
ANY = -1
"""Whatever the revision is: the writer is the only one, or wants to overwrite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A state, as it was read."""

    state: Json
    schema: int
    """The version of the state's form."""
    epoch: int
    """The owner's epoch that wrote it; 0: nobody's."""
    revision: int
    """How often it has been written."""
    at: float
    """When (Unix time, s)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Saving:
    """A state to be written."""

    team: str
    role: str
    session: str
    state: Json
    schema: int = 1
    epoch: int = 0
    expected: int = ANY
    """The revision that was read; 0: there was none."""


def load(connection: Connection, team: str, role: str, session: str) -> Snapshot | None:
    """The last committed state; None: there is none."""
    row = connection.execute(LOAD, {"team_": team, "role_": role, "session_": session}).one_or_none()
    if row is None:
        return None
    return Snapshot(state=json.loads(row.body), schema=row.schema, epoch=row.epoch, revision=row.revision, at=row.at)


def sessions(connection: Connection, team: str, role: str) -> list[str]:
    """The sessions in which a role has a state, the one changed last first."""
    c = SNAPSHOTS.c
    found = select(c.session).where(c.team == team, c.role == role).order_by(c.at.desc(), c.session)
    return list(connection.execute(found).scalars())


def save(connection: Connection, states: Sequence[Saving], at: float) -> None:
    """Write states.

    Raises:
        Clash: one of them has been changed since it was read.
    """
    rows = [
        {
            "team": s.team,
            "role": s.role,
            "session": s.session,
            "body": json.dumps(s.state, ensure_ascii=False),
            "schema": s.schema,
            "epoch": s.epoch,
            "expected": s.expected,
            "at": at,
        }
        for s in states
    ]
    if rows and connection.execute(SAVE, rows).rowcount != len(rows):
        raise Clash("a state was changed by another writer since it was read")


def drop(connection: Connection, team: str, session: str) -> None:
    """Forget the states of a session, in every role."""
    c = SNAPSHOTS.c
    connection.execute(SNAPSHOTS.delete().where(c.team == team, c.session == session))
