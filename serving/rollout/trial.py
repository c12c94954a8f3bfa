"""A version on trial: where it stands on its way from the first step to promotion, and what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from serving.rollout.comparison import Comparison
from serving.rollout.outcome import Outcome
from serving.rollout.pairing import Arm
from serving.rollout.plan import Metric, Plan

Action = Literal["hold", "step", "promote", "rollback"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What is to be done with a version, and why."""

    action: Action
    why: str
    """The reason, in words and figures."""
    ratio: float = 0.0
    """The share of new sessions that it is to get, where that changes."""


@dataclass(slots=True)
class Counts:
    """Sessions of one version that ended during the trial."""

    judged: int = 0
    degraded: int = 0
    """Left out, since a fallback answered in place of the version's own model."""
    rewarded: int = 0
    """Judged sessions whose reward is known. The others' is missing, which is not 0."""


@dataclass(slots=True)
class Trial:
    """A canary beside the version that new sessions get by default."""

    version: str
    baseline: str
    since: float
    """Sessions that were opened earlier (Unix time, s) belong to no comparison: only the short ones would be over."""
    ratio: float
    """The share of new sessions when it was last looked at."""
    at_step: int = 0
    """Judged sessions of the version since its share last changed."""
    counts: dict[Arm, Counts] = field(default_factory=lambda: {arm: Counts() for arm in get_args(Arm)})
    comparisons: dict[Metric, Comparison] = field(default_factory=dict[Metric, Comparison])
    pending: Decision | None = None
    """What has been decided, and may or may not have been done."""

    @classmethod
    def begun(cls, version: str, baseline: str, ratio: float, since: float, plan: Plan) -> Self:
        """Nothing known yet."""
        made = {metric: Comparison.begun(metric, plan) for metric in get_args(Metric)}
        return cls(version, baseline, since, ratio, comparisons=made)

    def arm(self, outcome: Outcome) -> Arm | None:
        """Which side a session belongs to; None: neither."""
        if outcome.opened < self.since:
            return None
        return {self.version: "canary", self.baseline: "baseline"}.get(outcome.version)  # type: ignore[return-value]

    def ended(self, outcome: Outcome) -> None:
        """Count a session in that is over."""
        arm = self.arm(outcome)
        if arm is None:
            return
        if outcome.degraded:
            self.counts[arm].degraded += 1
            return
        self.counts[arm].judged += 1
        self.at_step += arm == "canary"
        self._add(arm, "errors", float(outcome.error))
        self._add(arm, "invalid_calls", outcome.invalid_calls)
        self._add(arm, "latency", outcome.latency_ms)

    def rewarded(self, outcome: Outcome, value: float) -> None:
        """Count in what a session that is over was paid."""
        arm = self.arm(outcome)
        if arm is not None and not outcome.degraded:
            self.counts[arm].rewarded += 1
            self._add(arm, "reward", value)

    def _add(self, arm: Arm, metric: Metric, value: float | None) -> None:
        if value is not None:
            self.comparisons[metric].add(arm, value)

    def moved(self, ratio: float) -> None:
        """Its share of new sessions has changed."""
        self.ratio, self.at_step, self.pending = ratio, 0, None

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "version": self.version,
            "baseline": self.baseline,
            "since": self.since,
            "ratio": self.ratio,
            "at_step": self.at_step,
            "counts": {arm: [c.judged, c.degraded, c.rewarded] for arm, c in self.counts.items()},
            "comparisons": [c.state() for c in self.comparisons.values()],
            "pending": _written(self.pending),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The one that ``state`` was taken from."""
        comparisons = [Comparison.from_state(c) for c in state["comparisons"]]
        return cls(
            version=state["version"],
            baseline=state["baseline"],
            since=state["since"],
            ratio=state["ratio"],
            at_step=state["at_step"],
            counts={arm: Counts(*c) for arm, c in state["counts"].items()},
            comparisons={c.metric: c for c in comparisons},
            pending=Decision(**state["pending"]) if state["pending"] else None,
        )


def _written(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    return {"action": decision.action, "why": decision.why, "ratio": decision.ratio}
