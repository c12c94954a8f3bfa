"""Bounds on a mean that hold at all times at once: looked at after every session, they stay true.

Two kinds. ``NormalMixture`` is for values of an unknown scale (rewards, logarithms of latencies). It is asymptotic
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and asymptotic confidence
sequences"), so it says nothing before ``BURN_IN`` values. ``Betting`` is for bounded values that are often all the same
(errors, invalid calls), where a variance would say too little; it is exact from the first value on (Waudby-Smith and
Ramdas 2024, "Estimating means of bounded random variables by betting"). Both take a value in O(1), and merge: neither
the order of values nor in how many parts they came makes a difference.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BURN_IN = 30
"""Values before which a normal mixture says nothing: the central limit theorem needs some."""
STAKES = (0.01, 0.03, 0.08, 0.16, 0.3, 0.5, 0.75, 0.95)
"""Shares of the most that may be bet. Small ones find small differences late, large ones find large ones early."""
LEVELS = 41
"""Means that are bet against, beside the asked ones: narrow around 0, wide at the ends."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Below and above the mean, each at its own level of confidence, at all times."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(slots=True)
class NormalMixture:
    """Bounds on the mean of values of any scale, each of which has a weight: one over its variance, but for a factor.

    Args:
        scale: the least standard deviation that a value of weight 1 is believed to have, in the value's unit. A run of
            good luck has a small variance too, and must not look certain on that account.
        tight_at: the weight at which the bounds are to be tightest.
    """

    scale: float = 1.0
    tight_at: float = 100.0
    count: int = 0
    weight: float = 0.0
    """Of all values."""
    mean: float = 0.0
    m2: float = 0.0
    """Sum of squared deviations from the mean, each times its weight."""

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a value in (West 1979). Its weight may depend on what came before, not on the value.

        Raises:
            ValueError: the value is not finite, or the weight not positive.
        """
        if not math.isfinite(value) or not weight > 0:
            raise ValueError(f"{value} is no observation: what is missing is left out")
        self.count += 1
        self.weight += weight
        gap = value - self.mean
        self.mean += gap * weight / self.weight
        self.m2 += weight * gap * (value - self.mean)

    def merge(self, other: "NormalMixture") -> None:
        """Count in all that the other counted (Chan, Golub and LeVeque 1983)."""
        total = self.weight + other.weight
        if total:
            gap = other.mean - self.mean
            self.m2 += other.m2 + gap * gap * self.weight * other.weight / total
            self.mean += gap * other.weight / total
            self.count, self.weight = self.count + other.count, total

    def bounds(self, alpha: float) -> Bounds:
        """The mean's bounds, each missed with probability ``alpha`` at most over all times.

        The one-sided normal mixture boundary in closed form (Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform,
        nonparametric, nonasymptotic confidence sequences", proposition 6), at the estimated variance.
        """
        if self.count < BURN_IN:
            return Bounds()
        rho = self.scale**2 * self.tight_at / _mixed(alpha)
        variance = max(self.m2 / self.count, self.scale**2)
        grown = self.weight * variance + rho
        reach = math.sqrt(2 * grown * math.log(math.sqrt(grown / rho) / (2 * alpha) + 1)) / self.weight
        return Bounds(self.mean - reach, self.mean + reach)

    def state(self) -> dict[str, float]:
        """All of it, as JSON."""
        return {
            "scale": self.scale,
            "tight_at": self.tight_at,
            "count": self.count,
            "weight": self.weight,
            "mean": self.mean,
            "m2": self.m2,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        return cls(**state)


def _mixed(alpha: float) -> float:
    """How many times the mixture's parameter the variance is where the boundary is tightest (the same, section 3.5)."""
    once = 2 * math.log(1 / (2 * alpha)) if alpha < 0.5 else 0.0
    return max(1.0, once + math.log(1 + once))


@dataclass(slots=True)
class Betting:
    """Bounds on the mean of values between -1 and 1.

    For each of some levels, and on either side of it, capital is bet on the mean not being there, at several stakes
    that each begin with the same share. While the mean is there, the capital is a nonnegative supermartingale, which
    grows to ``1 / alpha`` with probability ``alpha`` at most (Ville 1939). A bound is the outermost level that has been
    ruled out, so that it holds for means between levels too.

    Args:
        levels: means to bet against, in (-1, 1), beside the usual ones.
    """

    levels: Floats
    count: int = 0
    total: float = 0.0
    above: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """``(L, S)`` logarithms of the capital that was bet on the mean being above each level, a stake a column."""
    below: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """``(L, S)`` the same for below."""

    @classmethod
    def against(cls, asked: Sequence[float] = ()) -> Self:
        """Nothing counted yet. ``asked``: levels that must be among those that are bet against."""
        if any(not -1 < level < 1 for level in asked):
            raise ValueError(f"levels lie between -1 and 1, not {list(asked)}")
        usual = np.sinh(np.linspace(-4, 4, LEVELS)) / math.sinh(4) * 0.99
        levels = np.unique(np.concatenate([usual.round(6), np.asarray(asked, np.float64)]))
        shape = (len(levels), len(STAKES))
        return cls(levels, above=np.zeros(shape), below=np.zeros(shape))

    @property
    def mean(self) -> float:
        """The values' mean; 0 while there is none."""
        return self.total / self.count if self.count else 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a value in; bets are not weighted. Raises ValueError if it is not in [-1, 1]."""
        if not -1 <= value <= 1:
            raise ValueError(f"{value} is not between -1 and 1")
        self.count += 1
        self.total += value
        gap = value - self.levels[:, None]
        stakes = np.asarray(STAKES)[None, :]
        self.above += np.log1p(stakes * gap / (1 + self.levels[:, None]))
        self.below += np.log1p(-stakes * gap / (1 - self.levels[:, None]))

    def merge(self, other: "Betting") -> None:
        """Count in all that the other counted, against the same levels."""
        if not np.array_equal(self.levels, other.levels):
            raise ValueError("the two bet against different levels")
        self.count += other.count
        self.total += other.total
        self.above = self.above + other.above
        self.below = self.below + other.below

    def bounds(self, alpha: float) -> Bounds:
        """The mean's bounds, each missed with probability ``alpha`` at most over all times."""
        needed = math.log(len(STAKES) / alpha)
        risen = self.levels[_capital(self.above) >= needed]
        fallen = self.levels[_capital(self.below) >= needed]
        return Bounds(float(risen.max()) if risen.size else -math.inf, float(fallen.min()) if fallen.size else math.inf)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "levels": self.levels.tolist(),
            "count": self.count,
            "total": self.total,
            "above": self.above.tolist(),
            "below": self.below.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        return cls(
            np.asarray(state["levels"], np.float64),
            int(state["count"]),
            float(state["total"]),
            np.asarray(state["above"], np.float64),
            np.asarray(state["below"], np.float64),
        )


def _capital(logs: Floats) -> Floats:
    """``(L,)`` the logarithm of the sum over stakes, whose shares of 1/S are in the bar that it must reach."""
    most = logs.max(axis=1)
    return most + np.log(np.exp(logs - most[:, None]).sum(axis=1))
