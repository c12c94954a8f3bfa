"""Backpressure: publishers wait while the team is too far behind, and are refused when that lasts."""

import threading
import time

from redis.exceptions import RedisError

from runtime.bus.depth import depths
from runtime.bus.errors import Overloaded
from runtime.bus.parts import Parts
from runtime.store import outbox

FRESH_S = 0.1
"""How long a count of what waits is believed (s)."""
LOOK_S = 0.02
"""Pause between two looks while waiting for room (s)."""


class Gate:
    """Lets publishers through while the deepest stream, and what waits to be sent, are within the limit."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._counted_at = float("-inf")
        self._depth = 0

    def wait(self, count: int) -> None:
        """Wait for room for so many events, which are then on their way.

        Raises:
            Overloaded: there was none for ``BusSettings.block_s``.
        """
        limit = self._parts.settings.depth_limit
        depth = self.depth()
        deadline = time.monotonic() + self._parts.settings.block_s
        while depth > limit:
            if time.monotonic() > deadline or self._parts.closing.is_set():
                raise Overloaded(self._parts.team, depth, limit)
            self._parts.pause(LOOK_S)
            depth = self.depth()
        with self._lock:
            self._depth += count

    def depth(self) -> int:
        """How far behind the slowest reader is (events): the last count, and what was let through since."""
        with self._lock:
            if time.monotonic() - self._counted_at > FRESH_S:
                self._depth = self._count()
                self._counted_at = time.monotonic()
            return self._depth

    def _count(self) -> int:
        store = self._parts.store
        waiting = store.read(lambda c: outbox.unsent(c, self._parts.team)) if store else 0
        try:
            return max(waiting, *(d.behind for d in depths(self._parts)))
        except (RedisError, OSError):
            if store is None:
                raise
            return waiting
