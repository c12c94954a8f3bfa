"""Bounds that hold at all times at once, merge, and find what there is to find."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from serving.rollout.sequences import BURN_IN, Betting, Bounds, NormalMixture

ALPHA = 0.05
RUNS, LENGTH = 200, 1500
SLACK = 3.5
"""Standard deviations of the count of runs that go wrong, which chance is allowed."""
numbers = st.lists(st.floats(-50, 50), max_size=60)
shares = st.lists(st.floats(-1, 1), max_size=30)


def allowed(runs: int) -> float:
    """How many of so many runs may miss, where each does with probability ALPHA."""
    return runs * ALPHA + SLACK * math.sqrt(runs * ALPHA * (1 - ALPHA))


def missed(
    sequence: NormalMixture | Betting, values: NDArray[np.float64], mean: float, every: int
) -> tuple[bool, bool]:
    """Whether the true mean was ever below the lower bound, or above the upper one, looking again and again."""
    low = high = False
    for place, value in enumerate(values.tolist()):
        sequence.add(value)
        if place % every == 0:
            bounds = sequence.bounds(ALPHA)
            low, high = low or bounds.low > mean, high or bounds.high < mean
    return low, high


@pytest.mark.parametrize("kind", ["normal", "lopsided", "heavy", "rare"])
def test_a_reward_is_within_its_bounds_at_all_times(kind: str) -> None:
    """However often one looks, each bound is missed in 5% of runs at most, whatever the values are like."""
    chance = np.random.default_rng(7)
    draw = {
        "normal": lambda: chance.normal(size=LENGTH),
        "lopsided": lambda: chance.exponential(size=LENGTH) - 1,
        "heavy": lambda: np.clip(chance.standard_t(3, size=LENGTH), -12, 12),
        "rare": lambda: ((chance.random(LENGTH) < 0.9) - 0.9) / 0.3,
    }[kind]
    found = [missed(NormalMixture(), draw(), 0.0, 3) for _ in range(RUNS)]
    assert sum(low for low, _ in found) <= allowed(RUNS)
    assert sum(high for _, high in found) <= allowed(RUNS)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3])
def test_a_share_is_within_its_bounds_from_the_first_session_on(rate: float) -> None:
    """No burn-in and no variance: a difference of rates that is 0 is ruled out in no more than 5% of runs."""
    chance = np.random.default_rng(11)
    runs, length = 60, 400
    missings = [
        missed(Betting.against(), (chance.random(length) < rate).astype(float) - (chance.random(length) < rate), 0.0, 1)
        for _ in range(runs)
    ]
    assert sum(low for low, _ in missings) <= allowed(runs)
    assert sum(high for _, high in missings) <= allowed(runs)


def test_looking_again_and_again_at_an_ordinary_interval_would_go_wrong() -> None:
    """The tests above can fail: the usual interval, looked at all the time, misses far more often than in 5%."""
    chance = np.random.default_rng(3)
    wrong = 0
    for _ in range(RUNS):
        values = chance.normal(size=LENGTH)
        counts = np.arange(1, LENGTH + 1)
        means = np.cumsum(values) / counts
        wrong += bool((means[BURN_IN:] - 1.645 / np.sqrt(counts[BURN_IN:]) > 0).any())
    assert wrong > 2 * allowed(RUNS)


@settings(deadline=None)
@given(numbers, numbers)
def test_parts_of_rewards_merge_into_the_whole(some: list[float], more: list[float]) -> None:
    """In whatever parts and order values come, the bounds are the same."""
    whole, one, other = NormalMixture(), NormalMixture(), NormalMixture()
    for value in some + more:
        whole.add(value)
    for value in reversed(some):
        one.add(value)
    for value in more:
        other.add(value)
    other.merge(one)
    ours, theirs = whole.bounds(0.01), other.bounds(0.01)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(shares, shares)
def test_parts_of_shares_merge_into_the_whole(some: list[float], more: list[float]) -> None:
    """The same for bets."""
    whole, one, other = Betting.against([0.02]), Betting.against([0.02]), Betting.against([0.02])
    for value in some + more:
        whole.add(value)
    for value in more:
        one.add(value)
    for value in some:
        other.add(value)
    one.merge(other)
    np.testing.assert_allclose(whole.above, one.above, atol=1e-9)
    np.testing.assert_allclose(whole.below, one.below, atol=1e-9)
    assert (whole.count, whole.mean) == (one.count, pytest.approx(one.mean, abs=1e-12))


@settings(deadline=None)
@given(numbers, shares)
def test_a_restart_forgets_nothing(rewards: list[float], errors: list[float]) -> None:
    """Saved as JSON and read back, a sequence is the one that it was."""
    mixture, betting = NormalMixture(scale=2.0), Betting.against([-0.01])
    for value in rewards:
        mixture.add(value)
    for value in errors:
        betting.add(value)
    assert NormalMixture.from_state(json.loads(json.dumps(mixture.state()))) == mixture
    again = Betting.from_state(json.loads(json.dumps(betting.state())))
    assert (again.count, again.total, again.bounds(0.05)) == (betting.count, betting.total, betting.bounds(0.05))


def test_a_large_difference_is_found_early_and_a_small_one_late() -> None:
    """A version that always fails is certain to fail after ten sessions; no errors in 300 sessions rule 3% out."""
    failing = Betting.against([0.01])
    for _ in range(10):
        failing.add(1.0)
    assert failing.bounds(0.0125).low >= 0.01
    fine = Betting.against([0.03])
    for _ in range(300):
        fine.add(0.0)
    assert fine.bounds(0.0125).high <= 0.03
    assert fine.bounds(0.0125).high > 0.0


def test_a_few_equal_rewards_are_not_certain() -> None:
    """Nothing is said before the burn-in; after it, values without any variance still have bounds of some width."""
    mixture = NormalMixture()
    for _ in range(BURN_IN - 1):
        mixture.add(0.0)
    assert mixture.bounds(0.05) == Bounds()
    mixture.add(0.0)
    assert 0.1 < mixture.bounds(0.05).high < 1.0


def test_what_is_no_observation_is_refused() -> None:
    """NaN is a reward that is missing, and is left out by whoever counts; a share lies between -1 and 1."""
    with pytest.raises(ValueError, match="no observation"):
        NormalMixture().add(math.nan)
    with pytest.raises(ValueError, match="not between"):
        Betting.against().add(1.5)
    with pytest.raises(ValueError, match="levels"):
        Betting.against([1.0])
    with pytest.raises(ValueError, match="different levels"):
        Betting.against([0.1]).merge(Betting.against([0.2]))
