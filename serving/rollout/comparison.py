"""One metric of two versions, session by session: how much better the new one is, bounded at all times at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from serving.rollout.pairing import Arm, Pairing, Sum
from serving.rollout.plan import Metric, Plan
from serving.rollout.scale import Scale, Unit
from serving.rollout.sequences import Betting, Bounds, NormalMixture

LATENCY_DEVIATION = 0.25
"""The least standard deviation that the logarithm of a latency is believed to have."""
FASTEST_MS, SLOWEST_MS = 0.01, 3_600_000.0
"""Latencies beyond these count as these."""


class Sequence(Protocol):
    """Bounds on a mean (``sequences``)."""

    @property
    def count(self) -> int:
        """Values so far."""
        ...

    @property
    def mean(self) -> float:
        """Their mean."""
        ...

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a value in."""
        ...

    def bounds(self, alpha: float) -> Bounds:
        """Bounds on the mean."""
        ...

    def state(self) -> Mapping[str, Any]:
        """All of it, as JSON."""
        ...


@dataclass(slots=True)
class Comparison:
    """What is known of one metric.

    An *advantage* is how much better the new version is: positive is better, whatever the metric. Of rewards it is in
    standard deviations of the baseline, of shares it is their difference, of latencies the logarithm of their ratio.
    """

    metric: Metric
    sequence: Sequence
    """Of advantages."""
    pairing: Pairing = field(default_factory=Pairing)
    canary: Sum = field(default_factory=Sum)
    """All its values, in the metric's own unit (latency: logarithm of ms)."""
    baseline: Sum = field(default_factory=Sum)
    scale: Scale = field(default_factory=Scale)
    unit: Unit | None = None
    """What the waiting values are measured with."""

    @classmethod
    def begun(cls, metric: Metric, plan: Plan) -> Self:
        """Nothing counted yet."""
        return cls(metric, _sequence(metric, plan))

    def add(self, arm: Arm, value: float) -> None:
        """Count in what a session of one of the versions came to.

        Args:
            arm: whose session it was.
            value: its reward, its share from 0 to 1, or its latency (ms).

        Raises:
            ValueError: it is not finite, or no share.
        """
        if not math.isfinite(value):
            raise ValueError(f"{self.metric} {value} is no observation: what is missing is left out")
        if self.metric == "latency":
            value = math.log(min(max(value, FASTEST_MS), SLOWEST_MS))
        side = self.canary if arm == "canary" else self.baseline
        side.count += 1
        side.total += value
        measured = self._scaled(arm, value) if self.metric == "reward" else value
        difference = None if measured is None else self.pairing.add(arm, measured)
        if difference is not None:
            sign = 1 if self.metric == "reward" else -1
            self.sequence.add(sign * difference.value, difference.weight)

    def _scaled(self, arm: Arm, value: float) -> float | None:
        """The reward in the baseline's standard deviations, as they were known before; None while they are not."""
        if self.pairing.empty:
            self.unit = self.scale.unit
        if arm == "baseline":
            self.scale.add(value)
        return self.unit.of(value) if self.unit else None

    def bounds(self, alpha: float) -> Bounds:
        """Of the mean advantage, each missed with probability ``alpha`` at most over all times."""
        return self.sequence.bounds(alpha)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "metric": self.metric,
            "sequence": dict(self.sequence.state()),
            "pairing": self.pairing.state(),
            "canary": [self.canary.count, self.canary.total],
            "baseline": [self.baseline.count, self.baseline.total],
            "scale": self.scale.state(),
            "unit": [self.unit.mean, self.unit.deviation] if self.unit else None,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        kind = Betting if "levels" in state["sequence"] else NormalMixture
        return cls(
            metric=state["metric"],
            sequence=kind.from_state(state["sequence"]),
            pairing=Pairing.from_state(state["pairing"]),
            canary=Sum(*state["canary"]),
            baseline=Sum(*state["baseline"]),
            scale=Scale.from_state(state["scale"]),
            unit=Unit(*state["unit"]) if state["unit"] else None,
        )


def _sequence(metric: Metric, plan: Plan) -> NormalMixture | Betting:
    if metric == "reward":
        return NormalMixture()
    if metric == "latency":
        return NormalMixture(scale=LATENCY_DEVIATION)
    return Betting.against([-limit for limit in limits(metric, plan)])


def limits(metric: Metric, plan: Plan) -> tuple[float, float]:
    """A metric's tolerance and margin, as disadvantages."""
    if metric == "latency":
        return math.log(plan.latency.tolerance), math.log(plan.latency.margin)
    rule = {"reward": plan.reward, "errors": plan.errors, "invalid_calls": plan.invalid_calls}[metric]
    return rule.tolerance, rule.margin
