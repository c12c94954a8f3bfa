"""Smoother curves for the eye. Nothing here is ever learned from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, quantiles

DECAY = 0.95
"""Weight of the past in the moving average: a curve then shows about its last 20 points."""
WINDOW = 20
"""Points of the windowed mean."""
POINTS = 800
"""Points of a curve that are drawn at most: about two for each that a screen has room for."""
FENCE = 3.0
"""How many interquartile ranges beyond the quartiles a point still counts as usual (Tukey's outer fence)."""


class Ema:
    """Exponential moving average, in the values' unit, without a pull towards 0 at the start.

    The correction is that of Kingma & Ba 2015, section 3.
    """

    def __init__(self, decay: float = DECAY) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay is {decay}; it is at least 0 and below 1")
        self.decay = decay
        self._weighted = self._weight = 0.0

    @property
    def value(self) -> float | None:
        """The average so far; None before the first value."""
        return self._weighted / self._weight if self._weight else None

    def update(self, value: float | None) -> float | None:
        """Add a value and return the average; a missing or not finite one leaves it as it is."""
        if value is not None and math.isfinite(value):
            self._weighted = self.decay * self._weighted + (1 - self.decay) * value
            self._weight = self.decay * self._weight + (1 - self.decay)
        return self.value


def ema(values: Sequence[float | None], decay: float = DECAY) -> list[float | None]:
    """The average after each value, in the values' unit."""
    average = Ema(decay)
    return [average.update(value) for value in values]


def windowed_mean(values: Sequence[float | None], window: int = WINDOW) -> list[float | None]:
    """The mean of each value and those before it, as many as the window holds; None where all of them are missing."""
    if window < 1:
        raise ValueError(f"window is {window}; it is at least 1")
    return [_mean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What part of the value axis to show, in the values' unit."""

    low: float
    high: float
    cut: int
    """Points outside, which a figure must mention."""


def outlier_bounds(values: Sequence[float | None], fence: float = FENCE) -> Bounds | None:
    """The range of the usual values, and how many lie outside; None where there is no finite value."""
    known = _finite(values)
    if not known:
        return None
    low, high = min(known), max(known)
    if len(known) > 1:
        first, _, third = quantiles(known, n=4, method="inclusive")
        if third > first:
            reach = fence * (third - first)
            low, high = max(low, first - reach), min(high, third + reach)
    return Bounds(low, high, sum(not low <= v <= high for v in known))


def drawn(values: Sequence[float | None], most: int = POINTS) -> list[int]:
    """Which points of a long curve to draw, in order: both ends, and of each stretch the lowest and the highest.

    No extreme is lost, so what is drawn looks like the whole. All points where there are no more than ``most``.
    """
    if most < 4:
        raise ValueError(f"most is {most}; a curve needs at least 4 points")
    if len(values) <= most:
        return list(range(len(values)))
    stretches = most // 2 - 1
    edges = [len(values) * k // stretches for k in range(stretches + 1)]
    kept = {0, len(values) - 1}
    for start, end in pairwise(edges):
        known = [(v, k) for k in range(start, end) if (v := values[k]) is not None and math.isfinite(v)]
        if known:
            kept |= {min(known)[1], max(known)[1]}
    return sorted(kept)


def _mean(values: Sequence[float | None]) -> float | None:
    known = _finite(values)
    return fmean(known) if known else None


def _finite(values: Sequence[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]
