"""A rollout's plan, as a serving file says it under ``rollout``: by which steps, and what counts as worse."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from assembly.fields import Count, Finite, Positive, Section, Text
from serving.steering import Pinned

Metric = Literal["reward", "errors", "invalid_calls", "latency"]
"""What versions are compared by."""


def _percent(value: Any) -> Any:
    """``5%`` as 0.05; what is no text is left as it is."""
    if not isinstance(value, str):
        return value
    try:
        return float(value.strip().removesuffix("%")) / 100 if value.strip().endswith("%") else float(value)
    except ValueError:
        raise PydanticCustomError("percent", "wants a share such as 5% or 0.05") from None


Step = Annotated[Finite, BeforeValidator(_percent), Field(gt=0, le=1)]
"""The share of new sessions that the canary gets."""


class Tolerance(Section):
    """How far a version may fall behind."""

    tolerance: Annotated[Finite, Field(ge=0, lt=1)]
    """A version is rolled back once it is certain that it is worse by more than this."""
    margin: Annotated[Finite, Field(gt=0, lt=1)]
    """A version is promoted once it is certain that it is not worse by more than this."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.tolerance < self.margin:
            text = "must be above tolerance, or nothing could be promoted that may not also be rolled back"
            raise PydanticCustomError("margin", text)
        return self


class RewardRule(Tolerance):
    """Rewards of sessions, compared in standard deviations of the baseline's."""

    source: Literal["feedback", "terms"] = "feedback"
    """Rewards from outside, or those of the team's own terms that need no truth."""
    low: Finite | None = None
    """The least that feedback may say; null: any number."""
    high: Finite | None = None
    """The most that feedback may say; null: any number."""
    tolerance: Annotated[Finite, Field(ge=0)] = 0.05
    """Standard deviations by which a version may be worse before it is rolled back."""
    margin: Positive = 0.25
    """Standard deviations: a version is promoted once it is certain not to be worse by more."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise PydanticCustomError("bounds", "low must be below high")
        return self


class ShareRule(Tolerance):
    """Sessions with an error, or calls that were invalid: shares from 0 to 1, compared by their difference."""

    tolerance: Annotated[Finite, Field(ge=0, lt=1)] = 0.01
    """What the share may be higher by before a version is rolled back."""
    margin: Annotated[Finite, Field(gt=0, lt=1)] = 0.04
    """A version is promoted once it is certain that its share is not higher by more."""


class LatencyRule(Tolerance):
    """Time a decision takes, compared as a ratio (of geometric means)."""

    tolerance: Annotated[Finite, Field(ge=1)] = 1.1
    """How many times the baseline's latency is let pass."""
    margin: Annotated[Finite, Field(gt=1)] = 1.25
    """A version is promoted once it is certain that it does not take more than this many times as long."""


class Plan(Section):
    """How a new version gets more and more of the new sessions, or none any more."""

    steps: Annotated[tuple[Step, ...], Strict(False)] = (0.01, 0.05, 0.25, 1.0)
    """Shares of new sessions, one after the other; at the last one, 100%, the version is promoted."""
    minimum_sessions: Count = 200
    """Judged sessions of the new version at each step before the next one."""
    watch: Annotated[tuple[Metric, ...], Strict(False)] = ("reward", "errors", "invalid_calls", "latency")
    """What decides. What is not watched is still counted."""
    alpha: Annotated[Finite, Field(gt=0, lt=0.5)] = 0.05
    """The probability, over a whole rollout, that a version which is no worse is rolled back."""
    reward: RewardRule = Field(default_factory=RewardRule)
    errors: ShareRule = Field(default_factory=ShareRule)
    invalid_calls: ShareRule = Field(default_factory=ShareRule)
    latency: LatencyRule = Field(default_factory=LatencyRule)
    pinned: Pinned = "finish"
    """What becomes of the sessions of a version that is rolled back: `finish` on it, `migrate`, or `end`."""
    every_s: Positive = 5.0
    """How often it is looked whether there is something to decide (s)."""
    regressions: Text | None = None
    """A file of sessions that went badly (`python -m serving.regressions`): a version that does worse on one of them is
    not promoted."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if list(self.steps) != sorted(set(self.steps)) or self.steps[-1:] != (1.0,):
            raise PydanticCustomError("steps", "must rise from step to step, and end with 100%")
        if not self.watch or len(set(self.watch)) < len(self.watch):
            raise PydanticCustomError("watch", "must name at least one metric, each once")
        idle = [name for name in self.idle() if name not in self.watch]
        if idle:
            raise PydanticCustomError("idle", "has settings for {names}, which nobody watches", {"names": idle[0]})
        return self

    def idle(self) -> tuple[Metric, ...]:
        """Metrics whose settings stand otherwise than by default."""
        rules: Mapping[Metric, Tolerance] = {
            "reward": self.reward,
            "errors": self.errors,
            "invalid_calls": self.invalid_calls,
            "latency": self.latency,
        }
        return tuple(name for name, rule in rules.items() if rule != type(rule)() and not _only_bounds(rule))

    @property
    def level(self) -> float:
        """The probability of error that each watched metric may use up (Bonferroni)."""
        return self.alpha / len(self.watch)


def _only_bounds(rule: Tolerance) -> bool:
    """Whether a rule says no more than which feedback is accepted: that holds whether it is watched or not."""
    plain = {"tolerance", "margin", "source"}
    return isinstance(rule, RewardRule) and rule.model_dump(include=plain) == RewardRule().model_dump(include=plain)
