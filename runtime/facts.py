"""The fact board: what the agents of a team know together. Every version of every fact is kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.engine import Connection

from runtime import seams
from runtime.errors import RepertoryError
from runtime.records import Json
from runtime.store.base import Store
from runtime.store.tables import FACTS

ADD = text(
    "INSERT INTO facts (team, name, version, body, author, at) VALUES (:team, :name, :version, :body, :author, :at) "
    "ON CONFLICT (team, name, version) DO NOTHING"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One version of something known."""

    name: str
    value: Json
    version: int
    """From 1, one more with each change."""
    author: str
    """Who said so: an agent, or the decision in which one did."""
    at: float
    """When (Unix time, s)."""


class FactChanged(RepertoryError):
    """Somebody else changed the fact since it was read: read it again, and decide anew."""

    def __init__(self, name: str, expected: int, current: int) -> None:
        super().__init__(name, expected, current)
        self.name, self.expected, self.current = name, expected, current

    def __str__(self) -> str:
        return f"{self.name} has version {self.current}, not {self.expected}: read it again"


class FactBoard:
    """What a team knows. What one agent puts up, every other one sees at its next look."""

    def __init__(self, store: Store, team: str, *, now: seams.Clock = seams.now) -> None:
        self._store, self._team, self._now = store, team, now

    def get(self, name: str) -> Fact | None:
        """The fact as it stands; None: nobody has said anything."""
        return self._store.read(lambda c: newest(c, self._team, name))

    def put(self, name: str, value: Json, *, author: str, expected: int) -> Fact:
        """Put up a new version (compare-and-set).

        Args:
            name: what it is about.
            value: whatever JSON can say.
            author: who says so.
            expected: the version that was read; 0: there was none.

        Raises:
            FactChanged: it has another version by now.
        """
        fact = Fact(name=name, value=value, version=expected + 1, author=author, at=self._now())
        self._store.write(lambda c: put(c, self._team, fact))
        return fact

    def change(self, name: str, change: Callable[[Json], Json], *, author: str, tries: int = 20) -> Fact:
        """Make a new version of the newest one, reading again as often as somebody else was faster.

        Args:
            name: what it is about.
            change: from the value (None: there is none) to the new one; it may be called again.
            author: who says so.
            tries: how often it is tried.

        Raises:
            FactChanged: others were faster every time.
        """
        for left in reversed(range(tries)):
            read = self.get(name)
            try:
                value = change(read.value if read else None)
                return self.put(name, value, author=author, expected=read.version if read else 0)
            except FactChanged:
                if not left:
                    raise
        raise ValueError("it must be tried at least once")

    def all(self) -> dict[str, Fact]:
        """Everything that is known, by name."""
        return self._store.read(lambda c: _all(c, self._team))

    def said(self, name: str, author: str) -> Fact | None:
        """The last version that this author put up; None: it has said nothing about it."""
        return self._store.read(lambda c: _said(c, self._team, name, author))

    def history(self, name: str) -> list[Fact]:
        """Every version of a fact, the first one first."""
        return self._store.read(lambda c: _history(c, self._team, name))


def newest(connection: Connection, team: str, name: str) -> Fact | None:
    """The newest version, as the transaction sees it."""
    c = FACTS.c
    found = select(FACTS).where(c.team == team, c.name == name).order_by(c.version.desc()).limit(1)
    row = connection.execute(found).one_or_none()
    return _fact(row) if row else None


def put(connection: Connection, team: str, fact: Fact) -> None:
    """Add a version in the caller's transaction. Raises FactChanged when it is not the next one."""
    before = newest(connection, team, fact.name)
    current = before.version if before else 0
    row = {
        "team": team,
        "name": fact.name,
        "version": fact.version,
        "body": json.dumps(fact.value, ensure_ascii=False, allow_nan=False),
        "author": fact.author,
        "at": fact.at,
    }
    if current != fact.version - 1:
        raise FactChanged(fact.name, fact.version - 1, current)
    if not connection.execute(ADD, row).rowcount:  # another server connection has just committed this very version
        raise FactChanged(fact.name, fact.version - 1, fact.version)


def _all(connection: Connection, team: str) -> dict[str, Fact]:
    c = FACTS.c
    last = select(c.name, func.max(c.version).label("version")).where(c.team == team).group_by(c.name).subquery()
    found = select(FACTS).join(last, (c.name == last.c.name) & (c.version == last.c.version)).where(c.team == team)
    return {row.name: _fact(row) for row in connection.execute(found.order_by(c.name))}


def _said(connection: Connection, team: str, name: str, author: str) -> Fact | None:
    c = FACTS.c
    found = select(FACTS).where(c.team == team, c.name == name, c.author == author).order_by(c.version.desc()).limit(1)
    row = connection.execute(found).one_or_none()
    return _fact(row) if row else None


def _history(connection: Connection, team: str, name: str) -> list[Fact]:
    c = FACTS.c
    found = select(FACTS).where(c.team == team, c.name == name).order_by(c.version)
    return [_fact(row) for row in connection.execute(found)]


def _fact(row: Json) -> Fact:
    return Fact(name=row.name, value=json.loads(row.body), version=row.version, author=row.author, at=row.at)
