"""Running reward statistics: exact to merge in any order, never looking ahead, and resumed bit by bit."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewards.standardize import RewardStandardizer

KEY = "triage"
rewards = st.lists(st.floats(-1e4, 1e4, allow_subnormal=False), min_size=1, max_size=60)
parts = st.lists(st.lists(st.floats(-1e4, 1e4, allow_subnormal=False), max_size=20), min_size=1, max_size=6)


def counted(*batches: Sequence[float], center: bool = True, clip: float = 10.0) -> RewardStandardizer:
    made = RewardStandardizer(center=center, clip=clip)
    for batch in batches:
        made.update(KEY, batch)
    return made


def assert_same(one: RewardStandardizer, other: RewardStandardizer) -> None:
    """Equal to 1e-9 of the largest square that the sums run over."""
    assert one.count(KEY) == other.count(KEY)
    scale = 1.0 + max(abs(one.mean(KEY)), math.sqrt(one.variance(KEY)))
    assert one.mean(KEY) == pytest.approx(other.mean(KEY), abs=1e-9 * scale)
    assert one.variance(KEY) == pytest.approx(other.variance(KEY), abs=1e-9 * scale**2)


@given(rewards)
def test_statistics_are_those_of_numpy(values: list[float]) -> None:
    """Mean and population variance."""
    made = counted(values)
    scale = 1.0 + float(np.abs(values).max())
    assert made.count(KEY) == len(values)
    assert made.mean(KEY) == pytest.approx(np.mean(values), abs=1e-9 * scale)
    assert made.variance(KEY) == pytest.approx(np.var(values), abs=1e-9 * scale**2)


@given(parts)
def test_chunks_are_one_pass(batches: list[list[float]]) -> None:
    """How rewards fall into batches makes no difference."""
    assert_same(counted(*batches), counted([r for b in batches for r in b]))


@given(parts, st.randoms())
def test_merged_in_any_order_they_are_one_pass(batches: list[list[float]], chance: object) -> None:
    """Processes that each counted their own part add up to one that counted all, whoever reports first."""
    shuffled = list(batches)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    merged = RewardStandardizer()
    for batch in shuffled:
        merged.merge(counted(batch))
    assert_same(merged, counted([r for b in batches for r in b]))


@given(rewards, rewards, rewards)
def test_merging_is_associative(a: list[float], b: list[float], c: list[float]) -> None:
    """(a + b) + c = a + (b + c): processes may merge in a tree."""
    left = counted(a)
    left.merge(counted(b))
    left.merge(counted(c))
    tail = counted(b)
    tail.merge(counted(c))
    right = counted(a)
    right.merge(tail)
    assert_same(left, right)


def test_merging_takes_every_key_and_leaves_the_other_as_it_was() -> None:
    """Agents that only one process has seen are there afterwards."""
    one, other = counted([1.0, 2.0]), RewardStandardizer()
    other.update("resolver", [5.0, 7.0])
    before = other.state()
    one.merge(other)
    assert one.keys == (KEY, "resolver")
    assert (one.mean("resolver"), one.variance("resolver")) == (6.0, 1.0)
    assert other.state() == before


@given(rewards, rewards)
def test_transforming_uses_nothing_that_was_not_counted_before(known: list[float], batch: list[float]) -> None:
    """A reward's standardized value is the same whatever else is in its batch, and transforming counts nothing in."""
    made = counted(known)
    before = made.state()
    whole = made.transform(KEY, batch)
    one_by_one = [made.transform(KEY, [r])[0] for r in batch]
    assert whole.tolist() == one_by_one
    assert made.state() == before


@given(rewards, st.floats(0.01, 5.0))
def test_standardized_rewards_stay_within_the_clip(values: list[float], clip: float) -> None:
    """Also one that is a million standard deviations away."""
    made = counted([0.0, 1.0], clip=clip)
    assert np.abs(made.transform(KEY, [*values, 1e6, -1e6])).max() == clip


def test_standardized_rewards_are_z_scores() -> None:
    """(r - mean) / std, of a batch that was counted in."""
    made = counted([1.0, 3.0])
    assert made.transform(KEY, [1.0, 2.0, 5.0]).tolist() == [-1.0, 0.0, 3.0]


@given(rewards, st.floats(-1e3, 1e3), st.floats(0.1, 100.0))
def test_standardizing_is_free_of_shift_and_scale(values: list[float], shift: float, scale: float) -> None:
    """Paying in cents instead of dollars, or a bonus for everybody, changes nothing."""
    moved = [shift + scale * r for r in values]
    one, other = counted(values), counted(moved)
    assume(all(np.std(r) > 1e-3 * (1.0 + np.abs(r).max()) for r in (values, moved)))
    assert one.transform(KEY, values) == pytest.approx(other.transform(KEY, moved), abs=1e-6)


@given(rewards)
def test_without_centering_the_sign_stays(values: list[float]) -> None:
    """What was a loss is a loss, what was nothing is nothing."""
    made = counted(values, center=False)
    assert np.sign(made.transform(KEY, values)).tolist() == np.sign(values).tolist()


@given(st.floats(-1e6, 1e6), st.integers(1, 30))
def test_constant_rewards_pass_through(value: float, count: int) -> None:
    """A division by no variance would blow up the last bit; they are left as they are, unclipped."""
    made = counted([value] * count)
    assert made.passes_through(KEY)
    assert made.transform(KEY, [value, 99.0]).tolist() == [value, 99.0]


def test_rewards_of_a_key_that_was_never_seen_pass_through() -> None:
    """And what comes back is a copy: the raw rewards stay what they were."""
    values = np.array([1.0, 500.0])
    out = RewardStandardizer().transform("nobody", values)
    out[0] = 0.0
    assert values.tolist() == [1.0, 500.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused_and_nothing_counted(bad: float) -> None:
    """One NaN in the statistics would be in every reward from then on."""
    made = counted([1.0, 2.0])
    before = made.state()
    with pytest.raises(ValueError, match="rewards of triage are not all finite"):
        made.update(KEY, [3.0, bad])
    assert made.state() == before


@given(parts, parts)
def test_a_resumed_standardizer_goes_on_bit_by_bit(before: list[list[float]], after: list[list[float]]) -> None:
    """Statistics → JSON → statistics → more rewards is the same as never having stopped."""
    undisturbed = counted(*before, center=False, clip=3.0)
    resumed = RewardStandardizer.from_state(json.loads(json.dumps(undisturbed.state())))
    for batch in after:
        undisturbed.update(KEY, batch)
        resumed.update(KEY, batch)
        assert resumed.state() == undisturbed.state()
        assert resumed.transform(KEY, batch).tobytes() == undisturbed.transform(KEY, batch).tobytes()


def test_a_state_of_other_settings_is_refused() -> None:
    """It would silently mean something else."""
    with pytest.raises(ValueError, match=r"center=True, clip=10.0; this one center=False"):
        RewardStandardizer(center=False).load(RewardStandardizer().state())
    with pytest.raises(ValueError, match="clip must be positive"):
        RewardStandardizer(clip=0.0)
