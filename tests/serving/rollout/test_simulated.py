"""Whole rollouts on simulated sessions: what is worse goes, what is as good stays, whatever else happens."""

from collections.abc import Callable

import numpy as np
import pytest

from serving.rollout.plan import Plan
from tests.serving.rollout.simulated import Course, House, heavy, normal, rolled_out, solved, wild

SEEDS = range(20)
WITHIN = 150
"""Sessions of the canary within which half a standard deviation less reward is found, at the usual steps."""
BRISK = Plan(steps=(0.1, 0.5, 1.0), minimum_sessions=150)


def ends(house: House, plan: Plan | None = None, most: int = 60_000) -> list[Course]:
    return [rolled_out(seed, house, plan, most) for seed in SEEDS]


def count(courses: list[Course], end: str) -> int:
    return sum(course.end == end for course in courses)


@pytest.mark.parametrize("rewards", [normal, heavy, solved], ids=lambda r: r.__name__)
def test_a_version_that_is_half_a_standard_deviation_worse_gets_no_more_sessions(rewards: Callable) -> None:
    """In 19 of 20 rollouts at least, and within 150 sessions of its own: mostly while it still gets 1%."""
    courses = ends(House(rewards=rewards, gap=0.5))
    assert sum(c.end == "rollback" and c.sessions <= WITHIN for c in courses) >= 19


@pytest.mark.parametrize("rewards", [normal, heavy, solved, wild], ids=lambda r: r.__name__)
def test_of_two_equal_versions_the_new_one_is_hardly_ever_rolled_back(rewards: Callable) -> None:
    """One false rollback in 20 at most, though it is judged after every session; and it is promoted in most."""
    courses = ends(House(rewards=rewards), BRISK, 12_000)
    assert count(courses, "rollback") <= 1
    assert count(courses, "promote") >= 15


def test_a_better_version_is_promoted_step_by_step() -> None:
    """It passes every step on its way, and is promoted in most rollouts."""
    courses = ends(House(gap=-0.3), BRISK, 12_000)
    assert count(courses, "promote") >= 18
    promoted = next(c for c in courses if c.end == "promote")
    assert [(d.action, d.ratio) for d in promoted.decisions] == [("step", 0.5), ("promote", 1.0)]


@pytest.mark.parametrize(
    "drift",
    [
        lambda place, of: -6 * place / of,
        lambda place, of: 2 * np.sin(place / 300),
        lambda place, of: 3.0 * (place > 2000),
    ],
    ids=["down", "waves", "a jump"],
)
def test_what_happens_to_both_versions_alike_moves_neither(drift: Callable[[int, int], float]) -> None:
    """Days get worse, nights differ from days, the world changes: no version is rolled back on that account."""
    courses = ends(House(drift=drift), BRISK, 12_000)
    assert count(courses, "rollback") <= 1
    assert count(courses, "promote") >= 15


def test_a_drift_hides_no_worse_version() -> None:
    """Rewards rise for both by three standard deviations, and the worse one still goes."""
    courses = ends(House(gap=0.5, drift=lambda place, of: 3 * place / of))
    assert sum(c.end == "rollback" and c.sessions <= WITHIN for c in courses) >= 19


def test_sessions_that_come_in_bursts_are_judged_like_others() -> None:
    """Five of one version after five of the other: as certain, somewhat later."""
    assert count(ends(House(burst=5), BRISK, 12_000), "rollback") <= 1
    worse = ends(House(burst=5, gap=0.5), BRISK, 12_000)
    assert count(worse, "rollback") >= 19


def test_tiny_traffic_decides_nothing() -> None:
    """Two hundred sessions in all: nothing is promoted, and hardly anything rolled back."""
    courses = ends(House(gap=0.5), most=200)
    assert count(courses, "hold") >= 19


@pytest.mark.parametrize(
    ("house", "within"),
    [(House(errors=(0.01, 0.10)), 350), (House(errors=(0.0, 1.0)), 15), (House(slower=1.5), 60)],
    ids=["errors", "nothing but errors", "slower"],
)
def test_errors_and_slowness_are_found_where_rewards_are_the_same(house: House, within: int) -> None:
    """A version that fails ten times as often, always fails, or takes half as long again."""
    courses = ends(house)
    assert sum(c.end == "rollback" and c.sessions <= within for c in courses) >= 19


def test_the_reason_is_told_in_figures() -> None:
    """Both means, the difference and its bounds."""
    course = rolled_out(0, House(gap=0.5))
    why = course.decisions[-1].why
    assert why.startswith("reward: v2 ")
    assert "standard deviations, between -" in why
    assert why.endswith("certainly worse by more than 0.05 standard deviations")
