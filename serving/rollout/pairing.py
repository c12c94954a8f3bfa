"""Two streams of sessions as one stream of differences: what drifts for both versions alike falls out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Arm = Literal["canary", "baseline"]
"""Who played a session: the version that is tried, or the one that it is compared with."""


@dataclass(slots=True)
class Sum:
    """Values of one arm since the last difference."""

    count: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        """Of the values, at least one."""
        return self.total / self.count


@dataclass(frozen=True, slots=True)
class Difference:
    """Canary minus baseline."""

    value: float
    weight: float
    """One over its variance, in sessions: 1/2 for one against one, almost 1 for one against many."""


@dataclass(slots=True)
class Pairing:
    """Neighbours in time are compared: a difference is made as soon as both arms have had a session since the last.

    When a canary gets 1% of the sessions, each of its sessions is compared with the mean of the hundred before it. An
    afternoon on which everything goes badly, or a share that is raised in the middle of it, changes no difference.
    """

    canary: Sum = field(default_factory=Sum)
    baseline: Sum = field(default_factory=Sum)

    def add(self, arm: Arm, value: float) -> "Difference | None":
        """Count a value in; the difference that it completes, if it does."""
        mine = self.canary if arm == "canary" else self.baseline
        mine.count += 1
        mine.total += value
        if not (self.canary.count and self.baseline.count):
            return None
        weight = self.canary.count * self.baseline.count / (self.canary.count + self.baseline.count)
        difference = Difference(self.canary.mean - self.baseline.mean, weight)
        self.canary, self.baseline = Sum(), Sum()
        return difference

    @property
    def empty(self) -> bool:
        """Whether nothing waits for its counterpart."""
        return not (self.canary.count or self.baseline.count)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {name: [side.count, side.total] for name, side in self._sides()}

    def _sides(self) -> tuple[tuple[Arm, Sum], tuple[Arm, Sum]]:
        return ("canary", self.canary), ("baseline", self.baseline)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        return cls(Sum(*state["canary"]), Sum(*state["baseline"]))
