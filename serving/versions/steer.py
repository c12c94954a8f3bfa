"""Steering versions: what may be done with one as things stand, in one transaction with its line in the history."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import update
from sqlalchemy.engine import Connection

from runtime.access import share_of
from runtime.errors import ServiceUnavailable
from runtime.seams import Clock, now
from runtime.store import Store, pins
from runtime.store.tables import PINS
from serving.errors import NotNow, UnknownVersion
from serving.registry import Objects, vetted
from serving.registry.lineage import lineage_of
from serving.steering import Pinned
from serving.versions import ledger, ratios
from serving.versions.ledger import Change, Known

_log = logging.getLogger(__name__)
Share = tuple[float, int]
"""A version's share of new sessions, and the change that set it."""


class Versions:
    """The versions of every team that is served (``serving.steering.Steering``, and what operators need beside it).

    Args:
        store: where it is written down.
        registries: where each team's exports are.
        redis: makes a client, for the operators' keys; what is steered holds without it, too.
        clock: the time of changes.
    """

    def __init__(
        self, store: Store, registries: Mapping[str, Objects], redis: Callable[[], Any], clock: Clock = now
    ) -> None:
        self.store, self.registries, self._clock = store, registries, clock
        self._make_client, self._made = redis, None

    # -- looking

    def known(self, team: str) -> list[Known]:
        """A team's versions, in the order of their registration."""
        self._registry(team)
        return self.store.read(lambda c: ledger.versions(c, team))

    def version(self, team: str, name: str) -> Known:
        """A version by its alias or its hash. Raises UnknownVersion."""
        self._registry(team)
        return self.store.read(lambda c: ledger.version(c, team, name))

    def current(self, team: str) -> str:
        """The version that new sessions get by default."""
        self._registry(team)
        alias = self.seated(team)
        if not alias:
            raise UnknownVersion(f"{team} has no current version yet: promote one")
        return alias

    def seated(self, team: str) -> str:
        """The version that new sessions get by default; empty: nothing has been promoted yet."""
        return self.store.read(lambda c: ledger.current(c, team))[0]

    def ratios(self, team: str) -> Mapping[str, float]:
        """The share of new sessions that each canary gets."""
        return {v.alias: v.ratio for v in self.known(team) if v.ratio}

    def history(self, team: str, last: int = 1000) -> list[Change]:
        """What was done, oldest first."""
        self._registry(team)
        return self.store.read(lambda c: ledger.history(c, team, last))

    def open_sessions(self, team: str) -> Mapping[str, int]:
        """How many sessions are open on each version."""
        self._registry(team)
        return self.store.read(lambda c: pins.open_pins(c, team))

    # -- changing

    def adopt(self, team: str, known: Sequence[Known]) -> bool:
        """Take over the ratios that operators have written into Redis; whether one has changed.

        Raises:
            redis.RedisError: it does not answer; the last valid ratios hold.
        """
        return ratios.adopt(self.store, self._client(), team, known, self._clock)

    def register(self, team: str, directory: Path, *, by: str, why: str, parent: str = "") -> str:
        """Look an export over and keep it; its alias, which is an earlier one's where the content is the same.

        Raises:
            RefusedExport: what is wrong with it.
        """
        registry = self._registry(team)
        vetted(directory, team)
        name = registry.put(directory)
        lineage = lineage_of(directory, parent)

        def add(connection: Connection) -> str:
            alias, new = ledger.register(connection, team, name, lineage, self._clock())
            if new:
                self._note(connection, team, alias, "register", (by, why), hash=name)
            return alias

        return self.store.write(add)

    def deploy(self, team: str, version: str, *, by: str, why: str) -> Known:
        """Have a version started and warmed; it is ready, or has failed, some time later."""

        def begin(connection: Connection) -> Known:
            known = ledger.version(connection, team, version)
            if known.state in ("deploying", "ready"):
                return known
            ledger.move(connection, known, "deploying")
            self._note(connection, team, known.alias, "deploy", (by, why), before=known.state)
            return ledger.version(connection, team, known.alias)

        self._registry(team)
        return self.store.write(begin)

    def canary(self, team: str, version: str, ratio: float, *, by: str, why: str) -> None:
        """Give a version that is ready this share of new sessions."""

        def share(connection: Connection, known: Known) -> Share:
            current, _ = ledger.current(connection, team)
            everyone = ledger.versions(connection, team)
            if said := ratios.objection(everyone, {known.alias: share_of(str(ratio))}, current):
                raise NotNow("bad_ratio", said)
            return self._share(connection, known, ratio, "canary", (by, why), before=known.ratio, ratio=ratio)

        self._steer(team, version, share)

    def promote(self, team: str, version: str, *, by: str, why: str) -> None:
        """Make a version that is ready the current one; its share as a canary ends with that."""

        def seat(connection: Connection, known: Known) -> Share:
            if known.state != "ready":
                raise NotNow("not_ready", f"{known.alias} is {known.state}: only one that is ready can be promoted")
            before, _ = ledger.current(connection, team)
            ledger.seat(connection, team, known.alias)
            return self._share(connection, known, 0.0, "promote", (by, why), before=before)

        self._steer(team, version, seat)

    def rollback(self, team: str, version: str, *, by: str, why: str, pinned: Pinned = "finish") -> None:
        """Give this version no new sessions any more; if it was the current one, the one before takes its place.

        Raises:
            NotNow: there is none to take its place, or sessions cannot go on with it.
        """

        def back(connection: Connection, known: Known) -> Share:
            heir = self._heir(connection, known)
            moved = self._settle(connection, known, heir, pinned)
            if known.state == "ready":
                ledger.move(connection, known, "draining")
            what = {"heir": heir, "pinned": pinned, "sessions": moved, "ratio": known.ratio}
            return self._share(connection, known, 0.0, "rollback", (by, why), **what)

        self._steer(team, version, back)

    def drain(self, team: str, version: str, *, by: str, why: str) -> None:
        """Give a version no new sessions any more, not even those that ask for it."""

        def drain(connection: Connection, known: Known) -> Share:
            self._not_current(connection, known)
            return self._leave(connection, known, "draining", "drain", (by, why))

        self._steer(team, version, drain)

    def retire(self, team: str, version: str, *, by: str, why: str) -> None:
        """Stop a version that no session is open on. Raises NotNow where one is, or it is the current one."""

        def end(connection: Connection, known: Known) -> Share:
            self._not_current(connection, known)
            if many := pins.open_pins(connection, team).get(known.alias, 0):
                raise NotNow("open_sessions", f"{many} sessions are open on {known.alias}: drain it first")
            return self._leave(connection, known, "retired", "retire", (by, why))

        self._steer(team, version, end)

    def settle(self, known: Known, state: ledger.State, reason: str, by: str) -> None:
        """Note what became of a version that was being deployed. Raises Clash if somebody else moved it meanwhile."""

        def moved(connection: Connection) -> None:
            ledger.move(connection, known, state, reason)
            self._note(connection, known.team, known.alias, state, (by, reason))

        self.store.write(moved)

    # -- inside

    def _client(self) -> Any:
        if self._made is None:
            self._made = self._make_client()
        return self._made

    def _registry(self, team: str) -> Objects:
        if team not in self.registries:
            raise UnknownVersion(f"there is no team {team!r} here; there are {', '.join(sorted(self.registries))}")
        return self.registries[team]

    def _heir(self, connection: Connection, known: Known) -> str:
        """The version that takes the place of one that is rolled back, which is made the current one."""
        current, before = ledger.current(connection, known.team)
        if current != known.alias:
            return current
        ready = {v.alias for v in ledger.versions(connection, known.team) if v.state == "ready"}
        if before not in ready:
            raise NotNow("no_heir", f"{known.alias} is the current version, and {before or 'none'} before it is ready")
        ledger.seat(connection, known.team, before)
        return before

    def _settle(self, connection: Connection, known: Known, heir: str, pinned: Pinned) -> int:
        """What becomes of the sessions that are open on a version; how many there are."""
        c = PINS.c
        mine = update(PINS).where(c.team == known.team, c.version == known.alias, c.ended == 0)
        if pinned == "finish":
            return pins.open_pins(connection, known.team).get(known.alias, 0)
        if pinned == "end":
            return connection.execute(mine.values(ended=self._clock())).rowcount
        if not heir:
            raise NotNow("no_heir", f"no version is current: sessions of {known.alias} can go nowhere")
        other = ledger.version(connection, known.team, heir)
        if known.lineage.get("plays") != other.lineage.get("plays"):
            raise NotNow("schema", f"{known.alias} and {heir} do not play the same team: sessions cannot go on with it")
        return connection.execute(mine.values(version=heir)).rowcount

    def _not_current(self, connection: Connection, known: Known) -> None:
        if ledger.current(connection, known.team)[0] == known.alias:
            raise NotNow("current", f"{known.alias} is the current version: promote another one first")

    def _steer(self, team: str, version: str, act: Callable[[Connection, Known], Share]) -> None:
        """Do something to a version, in one transaction, and show the share that it has since."""

        def acted(connection: Connection) -> tuple[str, Share]:
            known = ledger.version(connection, team, version)
            return known.alias, act(connection, known)

        self._registry(team)
        alias, (ratio, change) = self.store.write(acted)
        self._show(team, alias, ratio, change)

    def _leave(
        self, connection: Connection, known: Known, state: ledger.State, action: str, whose: tuple[str, str]
    ) -> Share:
        """Bring a version into a state in which it gets no new sessions."""
        if known.state != state:
            ledger.move(connection, known, state)
        return self._share(connection, known, 0.0, action, whose, before=known.state)

    def _share(
        self, connection: Connection, known: Known, share: float, action: str, whose: tuple[str, str], **what: Any
    ) -> Share:
        """Note what was done to a version, and the share of new sessions that it has since."""
        change = self._note(connection, known.team, known.alias, action, whose, **what)
        ledger.set_ratio(connection, known.team, known.alias, share, change)
        return share, change

    def _note(
        self, connection: Connection, team: str, alias: str, action: str, whose: tuple[str, str], **what: Any
    ) -> int:
        by, why = whose
        made = Change(team=team, version=alias, action=action, by=by, why=why, what=what, at=self._clock())
        return ledger.note(connection, made)

    def _show(self, team: str, alias: str, ratio: float, change: int) -> None:
        """Write a ratio where operators look. It holds all the same: routers put back what is missing there."""
        try:
            ratios.put(self._client(), team, alias, ratio, change)
        except (RedisError, OSError, ServiceUnavailable) as error:
            _log.warning("Redis does not show the new ratio yet: %s", error)
