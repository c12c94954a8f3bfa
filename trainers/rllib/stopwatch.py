"""A sample of how long decisions take, cheap enough to stay on."""

import time
from collections.abc import Iterable

from runtime.types import AgentId

EVERY, AT_MOST = 16, 256
"""One decision in so many rounds is timed, and so many are kept until they are fetched."""


class Stopwatch:
    """Times one decision every few rounds: choosing, with the batch it was part of, and carrying it out."""

    def __init__(self) -> None:
        self._rounds = 0
        self._chosen = 0.0
        self._kept: list[tuple[AgentId, float]] = []

    def begin(self) -> float:
        """A round begins; returns when."""
        self._rounds += 1
        return time.perf_counter()

    def chosen(self, began: float) -> float | None:
        """The round's choices are made. When, if the first of them is to be timed."""
        if self._rounds % EVERY or len(self._kept) >= AT_MOST:
            return None
        now = time.perf_counter()
        self._chosen = now - began
        return now

    def done(self, agents: Iterable[AgentId], since: float) -> None:
        """These agents' choices are carried out."""
        ms = 1000 * (self._chosen + time.perf_counter() - since)
        self._kept += [(a, ms) for a in agents]

    def take(self) -> list[tuple[AgentId, float]]:
        """What was timed since the last time it was taken: agent, ms."""
        kept, self._kept = self._kept, []
        return kept
