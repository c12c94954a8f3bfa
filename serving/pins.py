"""Pins: which version a session belongs to. Redis answers fast, the store is right: disk beats Redis.

Every turn is committed only while the store says that the session is open on the version that played it, so a wrong
answer of Redis costs a detour and nothing else.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from runtime.errors import ServiceUnavailable
from runtime.records import Json
from runtime.seams import Clock, now
from runtime.store import Store, pins, snapshots
from runtime.store.snapshots import Saving
from runtime.store.tables import PINS
from serving.errors import NotNow
from serving.versions import ledger

_log = logging.getLogger(__name__)
STATE = "session"
"""The role under which a served session's state is kept."""
FIRST = """
local held = redis.call('GET', KEYS[1])
if held then return held end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])
return ARGV[1]
"""
"""Pin unless it is pinned: in either case, to what."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A session's version."""

    version: str
    """Its alias."""
    open: bool = True


class Pins:
    """The pins of a team's sessions.

    Args:
        store: where they are right.
        redis: makes a client, where they are fast; without it, everything is asked of the store.
        idle_s: for how long Redis keeps one (s).
        clock: the time on pins.
    """

    def __init__(self, store: Store, redis: Callable[[], Any], idle_s: float, clock: Clock = now) -> None:
        self._store, self._make, self._idle_s, self._clock = store, redis, idle_s, clock
        self._client: Any = None

    def open(self, team: str, session: str, version: str, state: Json) -> tuple[str, bool]:
        """Pin a new session and keep its first state; the version it is pinned to, and whether it is new.

        Whoever pins a session first has pinned it. In one transaction: the version still gets new sessions, the pin,
        the state.

        Raises:
            NotNow: the version does not get new sessions any more.
        """
        said = self._redis(lambda r: r.eval(FIRST, 1, _key(team, session), version, int(self._idle_s) or 1))
        wanted = _text(said) or version

        def first(connection: Connection) -> tuple[str, bool]:
            known = pinned(connection, team, session)
            if known is not None:
                return known.version, False
            if (held := ledger.version(connection, team, wanted)).state != "ready":
                raise NotNow("not_ready", f"{held.alias} is {held.state}: it gets no new sessions")
            pins.pin(connection, team, session, wanted, self._clock())
            snapshots.save(connection, [Saving(team=team, role=STATE, session=session, state=state)], self._clock())
            return wanted, True

        try:
            right, new = self._store.write(first)
        except BaseException:
            self.forget(team, session)
            raise
        if right != _text(said):
            self.correct(team, session, right)
        return right, new

    def find(self, team: str, session: str) -> Pin | None:
        """A session's pin, as Redis or else the store has it; None: there is no such session."""
        said = _text(self._redis(lambda r: r.get(_key(team, session))))
        return Pin(said) if said else self.right(team, session)

    def right(self, team: str, session: str) -> Pin | None:
        """A session's pin as the store has it; Redis is corrected."""
        known = self._store.read(lambda c: pinned(c, team, session))
        if known is not None and known.open:
            self.correct(team, session, known.version)
        return known

    def end(self, team: str, session: str) -> None:
        """End a session: it gets no turns any more."""

        def end(connection: Connection) -> None:
            pins.unpin(connection, team, session, self._clock())
            snapshots.drop(connection, team, session)

        self._store.write(end)
        self.forget(team, session)

    def alive(self, team: str, session: str, version: str) -> bool:
        """Note that a session is not idle; whether it is open on that version."""
        return self._store.write(lambda c: touch(c, team, session, version, self._clock()))

    def correct(self, team: str, session: str, version: str) -> None:
        """Have Redis say what the store says."""
        self._redis(lambda r: r.set(_key(team, session), version, ex=int(self._idle_s) or 1))

    def forget(self, team: str, session: str) -> None:
        """Have Redis say nothing of a session."""
        self._redis(lambda r: r.delete(_key(team, session)))

    def _redis(self, ask: Callable[[Any], Any]) -> Any:
        """Ask Redis; None where it does not answer: then the store is asked."""
        try:
            if self._client is None:
                self._client = self._make()
            return ask(self._client)
        except (RedisError, OSError, ServiceUnavailable) as error:
            _log.warning("Redis does not answer, the store does: %s", error)
            return None


def pinned(connection: Connection, team: str, session: str) -> Pin | None:
    """A session's pin; None: there is no such session."""
    c = PINS.c
    row = connection.execute(select(c.version, c.ended).where(c.team == team, c.session == session)).one_or_none()
    return Pin(row.version, row.ended == 0) if row else None


def touch(connection: Connection, team: str, session: str, version: str, at: float) -> bool:
    """Note that a session is alive, if it is open on that version; whether it is. Holds until the transaction ends."""
    c = PINS.c
    mine = update(PINS).where(c.team == team, c.session == session, c.version == version, c.ended == 0)
    return connection.execute(mine.values(at=at)).rowcount == 1


def _key(team: str, session: str) -> str:
    return f"serving:pin:{team}:{session}"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
