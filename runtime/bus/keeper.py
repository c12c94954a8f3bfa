"""The team's upkeep: one process at a time sends what others left, publishes what is due, cuts what is done with."""

import contextlib
import logging
import threading
from collections.abc import Callable

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from runtime.bus import burial, route, trim, verify
from runtime.bus.accept import accept_due
from runtime.bus.event import new_id
from runtime.bus.parts import Parts
from runtime.bus.refill import refill
from runtime.bus.relay import Relay
from runtime.store import dead, inbox, outbox, timers
from runtime.store.base import StoreBusy

HOLD_MS = 5_000
"""How long the upkeep stays with a process that says nothing (ms)."""
AT_ONCE = 500
"""Events taken over in one go."""
RARELY = 20
"""Rounds between two looks at what changes slowly."""
_log = logging.getLogger(__name__)


class Keeper:
    """Does the upkeep whenever it is this process's turn."""

    def __init__(self, parts: Parts, relay: Relay) -> None:
        self._parts, self._relay = parts, relay
        self._me = new_id()
        self._rounds = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bus-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the round at hand, and let another process take its turn."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(RedisError, OSError):  # else the lock runs out
            self._parts.scripts.unlock(keys=[self._parts.names.keeper], args=[self._me])

    def round(self) -> bool:
        """Do everything once; False when it is another process's turn."""
        if not self._parts.scripts.lock(keys=[self._parts.names.keeper], args=[self._me, HOLD_MS]):
            return False
        if refill(self._parts):
            self._dead_letters()
        route.register(self._parts)
        self._all(self._routed)
        self._all(self._due)
        self._all(self._stragglers)
        trim.trim(self._parts)
        if self._rounds % RARELY == 0:
            verify.verify(self._parts)
            self._prune()
        self._rounds += 1
        return True

    def _run(self) -> None:
        while not self._stop.wait(self._parts.settings.keep_s):
            try:
                self.round()
            except (RedisError, OSError, SQLAlchemyError, StoreBusy) as error:
                _log.warning("upkeep of team %s waits: %s", self._parts.team, error)
            except Exception:  # noqa: BLE001 - a fault of ours in one round must not end all later ones
                _log.exception("upkeep of team %s failed", self._parts.team)

    def _all(self, some: Callable[[], bool]) -> None:
        """Again and again while there is more."""
        while some() and not self._stop.is_set():
            pass

    def _routed(self) -> bool:
        rows, looked = route.route(self._parts)
        if rows:
            self._relay.send(rows)
        return looked == route.AT_ONCE

    def _due(self) -> bool:
        parts, now = self._parts, self._parts.now()
        if not parts.held().read(lambda c: timers.waiting(c, parts.team, now, 1)):
            return False
        rows = parts.held().write(lambda c: accept_due(c, parts, now, AT_ONCE))
        self._relay.send(rows)
        return len(rows) == AT_ONCE

    def _stragglers(self) -> bool:
        parts, now = self._parts, self._parts.now()
        before = now - parts.settings.straggler_s
        if not parts.held().read(lambda c: outbox.any_unsent(c, parts.team, before)):
            return False
        rows = parts.held().write(lambda c: outbox.claim_unsent(c, parts.team, before, now, AT_ONCE))
        return self._relay.send(rows) and len(rows) == AT_ONCE

    def _dead_letters(self) -> None:
        """Put dead letters back onto their streams."""
        parts = self._parts
        for letter in parts.held().read(lambda c: dead.letters(c, parts.team)):
            burial.put(parts, letter)

    def _prune(self) -> None:
        parts, now = self._parts, self._parts.now()
        settings = parts.settings
        parts.held().write(lambda c: inbox.prune(c, now - settings.inbox_s, now - settings.session_s))
