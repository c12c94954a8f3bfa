"""A rollout on simulated sessions: chance is seeded, the judgement is the real one."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from serving.rollout.judge import judged
from serving.rollout.outcome import Outcome
from serving.rollout.plan import Plan
from serving.rollout.trial import Decision, Trial

Rewards = Callable[[np.random.Generator, int], np.ndarray]
"""``rewards(chance, N)``: ``(N,)`` rewards of the baseline, with mean 0 and standard deviation 1 where there is one."""


def normal(chance: np.random.Generator, count: int) -> np.ndarray:
    return chance.normal(size=count)


def heavy(chance: np.random.Generator, count: int) -> np.ndarray:
    """Student's t with 2.5 degrees of freedom: a variance, but no third moment; scaled to a standard deviation of 1."""
    return chance.standard_t(2.5, size=count) / np.sqrt(5.0)


def wild(chance: np.random.Generator, count: int) -> np.ndarray:
    """Cauchy: not even a mean."""
    return chance.standard_cauchy(size=count)


def solved(chance: np.random.Generator, count: int) -> np.ndarray:
    """Solved in nine cases of ten, or not."""
    return ((chance.random(count) < 0.9) - 0.9) / 0.3


@dataclass(frozen=True, kw_only=True)
class House:
    """How sessions of the two versions go."""

    rewards: Rewards = normal
    gap: float = 0.0
    """Baseline's mean reward minus the canary's, in standard deviations."""
    errors: tuple[float, float] = (0.01, 0.01)
    """The share of sessions with an error: the baseline's, the canary's."""
    slower: float = 1.0
    """How many times as long the canary takes."""
    drift: Callable[[int, int], float] = field(default=lambda place, of: 0.0)
    """What is added to the reward of session ``place`` of all, whoever plays it."""
    burst: int = 1
    """How many sessions in a row go to the same version."""


@dataclass
class Course:
    """How a rollout went."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    """All but the holding ones."""
    sessions: int = 0
    """Of the canary."""
    in_all: int = 0

    @property
    def end(self) -> str:
        """promote, rollback, or hold."""
        last = self.decisions[-1].action if self.decisions else "hold"
        return "hold" if last == "step" else last


def rolled_out(seed: int, house: House, plan: Plan | None = None, most: int = 60_000) -> Course:
    """Play sessions, judging after each of the canary's, until there is an end."""
    plan = plan or Plan()
    chance = np.random.default_rng(seed)
    trial = Trial.begun("v2", "v1", plan.steps[0], 0.0, plan)
    rewards, draws = house.rewards(chance, most), np.repeat(chance.random(most // house.burst + 1), house.burst)
    errors, latencies = chance.random(most), np.exp(chance.normal(4, 0.4, size=most))
    invalid = (chance.random(most) < 0.05) / 4
    course = Course()
    for place in range(most):
        canary = bool(draws[place] < trial.ratio)
        course.in_all += 1
        course.sessions += canary
        outcome = Outcome(
            session=str(place),
            version="v2" if canary else "v1",
            opened=float(place),
            error=bool(errors[place] < house.errors[canary]),
            invalid_calls=float(invalid[place]),
            latency_ms=float(latencies[place] * (house.slower if canary else 1)),
        )
        trial.ended(outcome)
        trial.rewarded(outcome, 12 * (rewards[place] - house.gap * canary + house.drift(place, most)) + 40)
        if canary and _ended(plan, trial, course):
            break
    return course


def _ended(plan: Plan, trial: Trial, course: Course) -> bool:
    decision = judged(plan, trial)
    if decision.action == "hold":
        return False
    course.decisions.append(decision)
    if decision.action == "step":
        trial.moved(decision.ratio)
    return decision.action != "step"
