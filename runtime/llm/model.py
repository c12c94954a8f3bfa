"""What an agent asks: the declared model, then its fallbacks, then a local policy, then nobody."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

from runtime.background import within
from runtime.llm.calling import Caller
from runtime.llm.limits import RESERVE_S, SHARE, Limits, Seams
from runtime.llm.types import (
    Answer,
    Answered,
    Failure,
    Finished,
    LocalPolicy,
    Partial,
    Request,
    Source,
    Spent,
    Unavailable,
)
from runtime.records import Closed

CHARS_A_TOKEN = 4
"""Of English text, roughly: for a model that neither reports its tokens nor has a tokenizer here."""
LOCAL = "local"
"""The provider's name in an answer of the local policy."""


class Price(Closed):
    """What a model costs, in US dollars per million tokens."""

    usd_per_million_in: float
    usd_per_million_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """US dollars for so many tokens."""
        return (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1e6


@dataclass(frozen=True, slots=True)
class Priced:
    """A model to be asked, and its price; None where it is not known."""

    caller: Caller
    price: Price | None = None


class Model:
    """A model with its fallbacks. May be asked from several threads; no question takes longer than its budget."""

    def __init__(self, chain: Sequence[Priced], limits: Limits, seams: Seams, local: LocalPolicy | None = None) -> None:
        if not chain:
            raise ValueError("a model needs at least one source")
        self._chain, self._limits, self._seams, self._local = tuple(chain), limits, seams, local

    def ask(self, request: Request, budget_s: float | None = None) -> Answer:
        """The answer, within the turn's budget (s) and the model's own limit."""
        asking = self._asked(request, budget_s, shown=False)
        while True:
            try:
                next(asking)
            except StopIteration as stop:
                return stop.value

    def stream(self, request: Request, budget_s: float | None = None) -> Generator[str, None, Answer]:
        """The answer's text as it comes, and the answer as the generator's value.

        Once some text was handed on nobody else is asked, since it cannot be taken back.
        """
        return (yield from self._asked(request, budget_s, shown=True))

    def stats(self) -> list[dict[str, int | str]]:
        """Of each model: how often it was asked, how often again, and whether its breaker is open."""
        return [step.caller.stats() for step in self._chain]

    def close(self) -> None:
        """Release every source."""
        for step in self._chain:
            step.caller.close()

    def _asked(self, request: Request, budget_s: float | None, shown: bool) -> Generator[str, None, Answer]:
        began = self._seams.monotonic()
        total = self._limits.total_s if budget_s is None else min(self._limits.total_s, budget_s)
        end_by = began + total - (min(RESERVE_S, total / 10) if self._local else 0.0)
        failures: list[Failure] = []
        attempts = 0
        for place, step in enumerate(self._chain):
            last = place == len(self._chain) - 1
            now = self._seams.monotonic()
            begin_by = end_by if last else now + SHARE * (end_by - now)
            told = yield from step.caller.stream(request, begin_by, end_by)
            attempts += told.attempts
            spent = self._spent(step, request, told, began, attempts, degraded=place > 0)
            if isinstance(told.end, Finished):
                return Answered(text=told.text, spent=spent, reason=told.end.reason, failures=tuple(failures))
            failures += [*told.failures, told.end]
            if shown and told.text:
                return Unavailable(spent=spent, failures=tuple(failures), partial=told.text)
        return self._last_resort(request, tuple(failures), (began, began + total), attempts)

    def _last_resort(
        self, request: Request, failures: tuple[Failure, ...], span: tuple[float, float], attempts: int
    ) -> Answer:
        local, began = self._local, span[0]
        if local is not None:
            try:
                text = within(max(span[1] - self._seams.monotonic(), 0.0), lambda: local(request), "the local policy")
            except Exception as error:  # noqa: BLE001 - the user's policy; the answer says what it raised
                failures = (*failures, Failure(kind="failed", message=f"local policy: {error!r}"))
            else:
                ms = 1000 * (self._seams.monotonic() - began)
                spent = Spent(provider=LOCAL, ms=ms, cost_usd=0.0, degraded=True, attempts=attempts)
                return Answered(text=text, spent=spent, failures=failures)
        ms = 1000 * (self._seams.monotonic() - began)
        return Unavailable(spent=Spent(ms=ms, degraded=True, attempts=attempts), failures=failures)

    def _spent(
        self, step: Priced, request: Request, told: Partial, began: float, attempts: int, *, degraded: bool
    ) -> Spent:
        source = step.caller.source
        tokens_in, tokens_out, counted = _tokens(source, request, told)
        return Spent(
            provider=source.provider,
            model=source.model,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            counted=counted,
            ms=1000 * (self._seams.monotonic() - began),
            cost_usd=step.price.of(tokens_in, tokens_out) if step.price else None,
            degraded=degraded or not isinstance(told.end, Finished),
            attempts=attempts,
        )


def _tokens(
    source: Source, request: Request, told: Partial
) -> tuple[int, int, Literal["reported", "tokenizer", "estimated"]]:
    end = told.end
    if isinstance(end, Finished) and end.tokens_in is not None and end.tokens_out is not None:
        return end.tokens_in, end.tokens_out, "reported"
    tokens_in, tokens_out = source.count(request.text), source.count(told.text)
    if tokens_in is not None and tokens_out is not None:
        return tokens_in, tokens_out, "tokenizer"
    return _estimated(request.text), _estimated(told.text), "estimated"


def _estimated(text: str) -> int:
    return -(-len(text) // CHARS_A_TOKEN)
