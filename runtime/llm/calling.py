"""One model, asked with patience: timeouts, attempts, breaker, rate limit. The only place that retries."""

from collections.abc import Generator
from contextlib import suppress
from queue import Empty, SimpleQueue

from runtime.llm.breaker import Breaker, Pace, Pass
from runtime.llm.limits import Limits, RetryBudget, Seams, backoff
from runtime.llm.shared import Shared
from runtime.llm.types import AGAINST, RETRIED, Failure, Finished, Happening, Partial, Piece, Request, Source

TELLING_S = 1.0
"""A model that was waited for less than this (s) before the budget ran out is not to blame."""
LONGEST_CHARS = 1_000_000
"""An answer longer than this is broken off: a model that never stops must not fill the memory."""


class Caller:
    """A source with all that stands between it and an agent."""

    def __init__(self, source: Source, limits: Limits, shared: Shared, seams: Seams) -> None:
        self.source, self.limits, self.seams, self._shared = source, limits, seams, shared
        key = f"{source.provider}:{source.model}"
        self.breaker = Breaker(key, shared, seams.now, seams.rng)
        self.pace = Pace(key, shared, seams.now)
        self.retries = RetryBudget()

    def stats(self) -> dict[str, int | str]:
        """Questions and retries of this process, and its breaker's state."""
        source, retries = self.source, self.retries
        return {
            "model": f"{source.provider}/{source.model}",
            "calls": retries.calls,
            "retries": retries.retries,
            "breaker": self.breaker.state,
        }

    def close(self) -> None:
        """Release the source, and the connections to the shared state."""
        self.source.close()
        self._shared.close()

    def stream(self, request: Request, begin_by: float, end_by: float) -> Generator[str, None, Partial]:
        """The answer's text as it comes; returns how it ended.

        Args:
            request: what to ask.
            begin_by: when the answer must have begun, on the monotonic clock (s).
            end_by: when it must be there.
        """
        self.retries.called()
        failures: list[Failure] = []
        for attempt in range(1, self.limits.attempts + 1):
            leave = self._leave(begin_by)
            if isinstance(leave, Failure):
                return Partial(text="", end=leave, attempts=attempt - 1, failures=tuple(failures))
            text, end = yield from self._attempt(request, begin_by, end_by)
            self._learn(leave, end)
            last = Partial(text=text, end=end, attempts=attempt, failures=tuple(failures))
            if isinstance(end, Finished) or text or not self._again(end, attempt, begin_by):
                return last
            failures.append(end)
        return last  # pyright: ignore[reportPossiblyUnboundVariable] - there is at least one attempt

    def _leave(self, begin_by: float) -> Pass | Failure:
        """Wait for this call's turn; a failure where there is no leave to make it in time."""
        left = begin_by - self.seams.monotonic()
        if left <= 0:
            return Failure(kind="timeout", message="no time is left to begin", hasty=True)
        waited = self.pace.wait(left)
        if waited is None:
            return Failure(kind="rate_limited", message="the model's rate limit leaves no call within the budget")
        if waited > 0:
            self.seams.sleep(waited)
        return self.breaker.ask() or Failure(kind="breaker_open", message="it failed too often just now")

    def _attempt(
        self, request: Request, begin_by: float, end_by: float
    ) -> Generator[str, None, tuple[str, Finished | Failure]]:
        inbox: SimpleQueue[Happening] = SimpleQueue()
        cancel = self.source.start(request, inbox.put)
        wait, by, parts, length = self.limits.first_chunk_s, begin_by, list[str](), 0
        try:
            while True:
                came = self._next(inbox, wait, by)
                if not isinstance(came, Piece):
                    return "".join(parts), came
                wait, length = self.limits.between_chunks_s, length + len(came.text)
                if length > LONGEST_CHARS:
                    return "".join(parts), Failure(kind="failed", message=f"over {LONGEST_CHARS:,} characters")
                if came.text:
                    by = end_by
                    parts.append(came.text)
                    yield came.text
        finally:
            cancel()

    def _next(self, inbox: "SimpleQueue[Happening]", wait: float, by: float) -> Happening:
        """The next thing that happens; a failure where it takes too long."""
        left = max(min(wait, by - self.seams.monotonic()), 0.0)
        with suppress(Empty):
            return inbox.get(timeout=left)
        return Failure(kind="timeout", message=f"nothing came for {left:.3g} s", hasty=left < min(wait, TELLING_S))

    def _learn(self, leave: Pass, end: Finished | Failure) -> None:
        """Tell breaker and rate limit. A probe always reports, or nobody else could."""
        if isinstance(end, Finished):
            self.breaker.report(leave, ok=True)
            self.pace.answered()
            return
        if end.kind == "rate_limited":
            self.pace.slow(end.retry_after_s)
        if leave.probe or end.kind == "refused" or (end.kind in AGAINST and not end.hasty):
            self.breaker.report(leave, ok=end.kind not in AGAINST)

    def _again(self, end: Failure, attempt: int, begin_by: float) -> bool:
        """Whether to try once more; waits for it if so."""
        if end.kind not in RETRIED or attempt >= self.limits.attempts:
            return False
        pause = max(end.retry_after_s or 0.0, backoff(self.limits, attempt, self.seams.rng))
        if self.seams.monotonic() + pause >= begin_by or not self.retries.take():
            return False
        self.seams.sleep(pause)
        return True
