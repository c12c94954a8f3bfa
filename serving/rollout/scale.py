"""How much the baseline's values vary: the unit in which rewards are compared, robust to values far out."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

WARM = 20
"""Values of the baseline that only settle the unit."""
MEMORY = 500
"""Values that the unit is made of, the last ones mostly: it follows a baseline that changes."""
FAR = 4.0
"""Standard deviations beyond which a value counts as if it were there: a single one must not decide a rollout."""
TINY = 1e-9
"""The smallest standard deviation, relative to the mean: a reward that never varies is compared in this unit."""
NORMAL = 1.4826
"""The standard deviation of a normal distribution, in median absolute deviations."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A scale as it was at one moment: both arms of a difference are measured with the same."""

    mean: float
    deviation: float

    def of(self, value: float) -> float:
        """The value in standard deviations from the mean, no farther out than it may count."""
        return min(max((value - self.mean) / self.deviation, -FAR), FAR)


@dataclass(slots=True)
class Scale:
    """Mean and variance of the baseline's values so far (Welford 1962), each no farther out than it may count."""

    first: list[float] = field(default_factory=list[float])
    """The first values, until there are enough to begin with their median."""
    count: int = 0
    mean: float = 0.0
    m2: float = 0.0

    @property
    def unit(self) -> Unit | None:
        """What values are measured with now; None while too few are known."""
        if self.count < WARM:
            return None
        return Unit(self.mean, max(math.sqrt(self.m2 / self.count), TINY * (1 + abs(self.mean))))

    def add(self, value: float) -> None:
        """Count a value of the baseline in."""
        unit = self.unit
        if unit is None:
            self._begin(value)
            return
        value = unit.mean + unit.of(value) * unit.deviation
        self.count += 1
        gap = value - self.mean
        self.mean += gap / self.count
        self.m2 += gap * (value - self.mean)
        if self.count > MEMORY:
            self.m2 *= MEMORY / self.count
            self.count = MEMORY

    def _begin(self, value: float) -> None:
        self.first.append(value)
        if len(self.first) < WARM:
            return
        self.mean = statistics.median(self.first)
        spread = NORMAL * statistics.median(abs(v - self.mean) for v in self.first) or statistics.pstdev(self.first)
        self.count, self.m2, self.first = WARM, WARM * spread**2, []

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {"first": list(self.first), "count": self.count, "mean": self.mean, "m2": self.m2}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        return cls(list(state["first"]), int(state["count"]), float(state["mean"]), float(state["m2"]))
