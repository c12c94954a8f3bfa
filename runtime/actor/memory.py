"""A bound on an agent's memory, with a death that says what it was."""

import logging
import os
import threading
from collections.abc import Callable

LOOK_S = 0.25
"""Pause between two looks (s): an agent cannot take gigabytes in less."""
EXIT_CODE = 87
"""Exit code of a process that went over its bound."""
LAST_WORDS_S = 2.0
"""How long the record of it may take (s) before the process ends anyhow."""

log = logging.getLogger(__name__)


def resident_mb() -> float:
    """This process's resident memory (MB)."""
    import psutil

    return psutil.Process().memory_info().rss / 1e6


class MemoryWatch:
    """Ends the process when it takes more than it may; Ray starts it again."""

    def __init__(self, limit_mb: int, last_words: Callable[[str], None]) -> None:
        self._limit_mb, self._last_words = limit_mb, last_words
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="memory", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            used = resident_mb()
            if used > self._limit_mb:
                self._end(f"memory: {used:.0f} MB resident, {self._limit_mb} MB allowed")

    def _end(self, why: str) -> None:
        log.error("agent ends: %s", why)
        teller = threading.Thread(target=self._last_words, args=(why,), daemon=True)
        teller.start()
        teller.join(LAST_WORDS_S)
        os._exit(EXIT_CODE)
