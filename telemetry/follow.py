"""Following a store's history: what was committed since, once each and in order, whoever wrote it."""

import time

from runtime.store import Store, history
from runtime.store.history import Noted

BATCH = 1000
"""Records read at once: some MB."""
GAP_S = 10.0
"""How long a missing place in the history is waited for (s): PostgreSQL gives places out before the commit, and leaves
one empty for ever where that fails. No transaction waits longer for its end than this."""


class Follower:
    """Reads on in the history from a place.

    Args:
        store: whose history.
        after: the place after which it begins; None: after what is there now.
    """

    def __init__(self, store: Store, after: int | None = 0) -> None:
        self._store = store
        self.place = store.read(history.newest) if after is None else after
        """Everything up to here has been handed out; a follower that begins anew here misses nothing."""
        self._ahead: set[int] = set()
        self._gap_since = 0.0

    def news(self) -> list[Noted]:
        """What was committed since the last call; empty where nothing was."""
        found = [n for n in self._store.read(lambda c: history.after(c, self.place, BATCH)) if n.id not in self._ahead]
        self._ahead.update(n.id for n in found)
        self._advance()
        return found

    def _advance(self) -> None:
        self._close_up()
        if not self._ahead:
            self._gap_since = 0.0
            return
        now = time.monotonic()
        self._gap_since = self._gap_since or now
        if now - self._gap_since > GAP_S:
            self.place, self._gap_since = min(self._ahead) - 1, 0.0
            self._close_up()

    def _close_up(self) -> None:
        while self.place + 1 in self._ahead:
            self.place += 1
            self._ahead.discard(self.place)
