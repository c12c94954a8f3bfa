"""What two runs of one case were paid, and which did better: by the terms that both were judged by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from runtime.records import Record, Rewarded

Verdict = Literal["better", "worse", "same", "unknown"]
"""How the second run went beside the first."""
EQUAL = 1e-9
"""Rewards nearer than this are the same: sums of the same numbers in another order differ by less."""


Paid = Mapping[str, float | None]
"""What each reward term paid in a run, in its unit; None where a value is missing, which is not zero."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Both sums by term."""

    was: Paid
    now: Paid

    @property
    def terms(self) -> list[str]:
        """The terms that both were judged by, with a value in both."""
        return [n for n, v in self.was.items() if v is not None and self.now.get(n) is not None]

    @property
    def left_out(self) -> list[str]:
        """Terms that only one was judged by, or that are missing in one."""
        return [n for n in dict.fromkeys((*self.was, *self.now)) if n not in self.terms]

    @property
    def before(self) -> float | None:
        """What the first was paid by the common terms; None: there are none."""
        return _sum(self.was, self.terms)

    @property
    def after(self) -> float | None:
        """What the second was paid by them."""
        return _sum(self.now, self.terms)

    def moved(self) -> dict[str, float]:
        """By how much each common term changed, where it did."""
        changes = {n: (self.now[n] or 0.0) - (self.was[n] or 0.0) for n in self.terms}
        return {n: change for n, change in changes.items() if abs(change) > EQUAL}

    def verdict(self) -> Verdict:
        """Which did better."""
        if self.before is None or self.after is None:
            return "unknown"
        change = self.after - self.before
        return "same" if abs(change) <= EQUAL else "better" if change > 0 else "worse"


def paid_in(records: Iterable[Record]) -> dict[str, float | None]:
    """What each reward term paid in a run, by its records."""
    sums: dict[str, float | None] = {}
    for record in records:
        if isinstance(record, Rewarded):
            before = sums.get(record.term, 0.0)
            sums[record.term] = None if record.value is None or before is None else before + record.value
    return sums


def _sum(values: Mapping[str, float | None], terms: Iterable[str]) -> float | None:
    known = [values[n] for n in terms]
    return sum(v for v in known if v is not None) if known else None
