"""What is known of versions: rows in the store, and every change to them in a history that is only added to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from sqlalchemy import select, text, update
from sqlalchemy.engine import Connection

from runtime.records import Json
from runtime.store.base import Clash
from serving.errors import UnknownVersion
from serving.tables import CHANGES, TEAMS, VERSIONS

State = Literal["registered", "deploying", "ready", "draining", "retired", "failed"]
"""A version's life. ``deploying``: being started and warmed. ``ready``: may get new sessions. ``draining``: only those
it has. ``failed``: could not be started or did not decide as at its export."""
SERVED: tuple[State, ...] = ("deploying", "ready", "draining")
"""Where a version has, or is to have, processes."""
ADD = text(
    "INSERT INTO serving_versions (team, alias, number, hash, state, lineage_body, at) "
    "SELECT :team, 'v' || (COALESCE(MAX(number), 0) + 1), COALESCE(MAX(number), 0) + 1, :hash, 'registered', :lineage, "
    ":at FROM serving_versions WHERE team = :team ON CONFLICT DO NOTHING RETURNING alias"
)
SEAT = text(
    "INSERT INTO serving_teams (team, current, before) VALUES (:team, :current, '') "
    "ON CONFLICT (team) DO UPDATE SET current = excluded.current, before = serving_teams.current "
    "WHERE serving_teams.current <> excluded.current"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A registered version."""

    team: str
    alias: str
    hash: str
    """Of its content."""
    state: State
    reason: str = ""
    """Why it failed."""
    ratio: float = 0.0
    """The share of new sessions that it gets as a canary."""
    ratio_change: int = 0
    """The change that set the share."""
    lineage: Mapping[str, Json] = field(default_factory=dict[str, Json])
    at: float = 0.0
    """When it was registered (Unix time, s)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Something that somebody did."""

    team: str
    version: str
    action: str
    by: str
    why: str
    what: Mapping[str, Json] = field(default_factory=dict[str, Json])
    at: float = 0.0
    """Unix time, s."""
    id: int = 0


def register(
    connection: Connection, team: str, content: str, lineage: Mapping[str, Json], at: float
) -> tuple[str, bool]:
    """The alias of an export, and whether it is new: the same content has one alias only."""
    row = {"team": team, "hash": content, "lineage": json.dumps(dict(lineage)), "at": at}
    made = connection.execute(ADD, row).scalar()
    if made is not None:
        return made, True
    c = VERSIONS.c
    known = connection.execute(select(c.alias).where(c.team == team, c.hash == content)).scalar()
    if known is None:
        raise Clash("another export was registered at the same moment")
    return known, False


def versions(connection: Connection, team: str) -> list[Known]:
    """All of a team's versions, in the order of their registration."""
    return [_known(r) for r in connection.execute(select(VERSIONS).where(VERSIONS.c.team == team).order_by("number"))]


def version(connection: Connection, team: str, name: str) -> Known:
    """A version by its alias, or by its hash or the first eight or more characters of it. Raises UnknownVersion."""
    found = [v for v in versions(connection, team) if v.alias == name or (len(name) >= 8 and v.hash.startswith(name))]
    if len(found) != 1:
        aliases = ", ".join(v.alias for v in versions(connection, team)) or "none"
        raise UnknownVersion(f"{team} has no version {name!r}; there are {aliases}")
    return found[0]


def move(connection: Connection, known: Known, state: State, reason: str = "") -> None:
    """Bring a version into another state, if it still is in the one that was read. Raises Clash."""
    c = VERSIONS.c
    mine = update(VERSIONS).where(c.team == known.team, c.alias == known.alias, c.state == known.state)
    if connection.execute(mine.values(state=state, reason=reason)).rowcount != 1:
        raise Clash(f"{known.team} {known.alias} is not {known.state} any more")


def set_ratio(connection: Connection, team: str, alias: str, ratio: float, change: int) -> None:
    """Note the share that a canary gets, and the change that set it."""
    c = VERSIONS.c
    mine = update(VERSIONS).where(c.team == team, c.alias == alias)
    connection.execute(mine.values(ratio=ratio, ratio_change=change))


def current(connection: Connection, team: str) -> tuple[str, str]:
    """The version that new sessions get and the one that did before; empty where there is none."""
    row = connection.execute(select(TEAMS.c.current, TEAMS.c.before).where(TEAMS.c.team == team)).one_or_none()
    return (row.current, row.before) if row else ("", "")


def seat(connection: Connection, team: str, alias: str) -> None:
    """Make a version the current one."""
    connection.execute(SEAT, {"team": team, "current": alias})


def note(connection: Connection, change: Change) -> int:
    """Add to the history; the change's number."""
    row = {
        "team": change.team,
        "version": change.version,
        "action": change.action,
        "by": change.by,
        "why": change.why,
        "body": json.dumps(dict(change.what)),
        "at": change.at,
    }
    return cast("int", connection.execute(CHANGES.insert().values(row).returning(CHANGES.c.id)).scalar_one())


def history(connection: Connection, team: str, last: int = 1000) -> list[Change]:
    """The newest changes, oldest first."""
    newest = select(CHANGES).where(CHANGES.c.team == team).order_by(CHANGES.c.id.desc()).limit(last)
    return [_change(row) for row in connection.execute(newest)][::-1]


def _known(row: Any) -> Known:
    return Known(
        team=row.team,
        alias=row.alias,
        hash=row.hash,
        state=row.state,
        reason=row.reason,
        ratio=row.ratio,
        ratio_change=row.ratio_change,
        lineage=json.loads(row.lineage_body),
        at=row.at,
    )


def _change(row: Any) -> Change:
    return Change(
        team=row.team,
        version=row.version,
        action=row.action,
        by=row.by,
        why=row.why,
        what=json.loads(row.body),
        at=row.at,
        id=row.id,
    )
