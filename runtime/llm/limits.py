"""How long a model call may take, and how often it is tried."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Lock

from pydantic import Field

from runtime.records import Closed
from runtime.seams import Clock, now, sleep


class Limits(Closed):
    """Times in seconds. The defaults are for a hosted model; a test may be less patient."""

    connect_s: float = Field(default=5.0, gt=0)
    """A healthy host takes a connection in well under a second."""
    first_chunk_s: float = Field(default=20.0, gt=0)
    """A queue and a long prompt delay the first token by seconds, hardly by more."""
    between_chunks_s: float = Field(default=15.0, gt=0)
    """Tokens come several a second: a pause this long is a stall."""
    total_s: float = Field(default=60.0, gt=0)
    """All attempts, waits and fallbacks of one question together, or the turn's budget where that is less."""
    attempts: int = Field(default=3, ge=1)
    """Calls to one model for one question."""
    backoff_s: float = Field(default=0.5, gt=0)
    """The longest wait before the second attempt; doubled for each further one."""
    backoff_max_s: float = Field(default=8.0, gt=0)
    """The longest wait there is, unless the model asks for more."""


SHARE = 0.6
"""The part of the time left in which a model with a fallback behind it must begin: the other needs some too."""
RESERVE_S = 1.0
"""What is kept of the budget for a local policy (s), at most a tenth of it: it is computed here and fast."""
RETRY_SHARE = 0.1
"""Retries a call, at most, over a process: when all calls fail, more load is the last thing that helps."""
RETRY_FLOOR = 2
"""Retries there are before any calls have earned some: enough for the first question to be tried three times."""
RETRY_BANK = 10.0
"""Retries that can be saved up in good times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seams:
    """The clock, sleeping and chance."""

    now: Clock = now
    """Unix time, s: what processes share."""
    monotonic: Clock = time.monotonic
    """For budgets (s): nobody sets it back."""
    sleep: Callable[[float], None] = sleep
    rng: Random = field(default_factory=Random)


class RetryBudget:
    """Retries at most ``RETRY_SHARE`` of the calls, from the twentieth call on; before that, ``RETRY_FLOOR``."""

    def __init__(self) -> None:
        self.calls = self.retries = 0
        self._credit = float(RETRY_FLOOR)
        self._lock = Lock()

    def called(self) -> None:
        """A question was asked, for the first time."""
        with self._lock:
            self.calls += 1
            if self.calls * RETRY_SHARE > RETRY_FLOOR:
                self._credit = min(self._credit + RETRY_SHARE, RETRY_BANK)

    def take(self) -> bool:
        """Use one retry, if there is one."""
        with self._lock:
            if self._credit < 1.0 - 1e-9:
                return False
            self._credit -= 1.0
            self.retries += 1
            return True


def backoff(limits: Limits, attempt: int, rng: Random) -> float:
    """Seconds to wait after the given attempt (from 1): full jitter, so that callers do not return together."""
    return rng.uniform(0.0, min(limits.backoff_s * 2 ** (attempt - 1), limits.backoff_max_s))
