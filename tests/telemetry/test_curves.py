import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.curves import Ema, drawn, ema, outlier_bounds, windowed_mean
from tests.telemetry.samples import QUICK

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)
GAPPY = st.lists(st.none() | st.floats(-1e6, 1e6) | st.just(math.nan), max_size=60)
WINDOWS = st.integers(1, 70)


@QUICK
@given(st.floats(-1e6, 1e6), st.integers(1, 60))
def test_a_constant_curve_stays_where_it_is(value: float, count: int) -> None:
    """Smoothing does not pull the start of a curve towards 0."""
    for smooth in (ema([value] * count), windowed_mean([value] * count)):
        assert smooth == [pytest.approx(value)] * count


@QUICK
@given(VALUES, WINDOWS)
def test_a_smooth_curve_stays_within_the_values(values: list[float], window: int) -> None:
    """No smoothed point lies above the largest or below the smallest value so far."""
    for smooth in (ema(values), windowed_mean(values, window)):
        for k, value in enumerate(smooth):
            assert value is not None
            assert min(values[: k + 1]) - 1e-6 <= value <= max(values[: k + 1]) + 1e-6


@QUICK
@given(VALUES, st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_smoothing_follows_a_change_of_unit(values: list[float], shift: float, scale: float) -> None:
    """Shifted and scaled values give the shifted and scaled curve."""
    moved = [shift + scale * value for value in values]
    for smooth in (ema, windowed_mean):
        expected = [shift + scale * value for value in smooth(values) if value is not None]
        assert smooth(moved) == pytest.approx(expected, abs=1e-3)


@QUICK
@given(GAPPY, GAPPY)
def test_smoothing_never_looks_ahead(past: list[float | None], future: list[float | None]) -> None:
    """What comes later changes no point."""
    for smooth in (ema, windowed_mean, lambda v: windowed_mean(v, 3)):
        assert smooth(past + future)[: len(past)] == smooth(past)


@QUICK
@given(GAPPY)
def test_missing_values_leave_the_average_as_it_is(values: list[float | None]) -> None:
    """A missing or not finite value is skipped, never taken for 0."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    average = Ema()
    for value in values:
        average.update(value)
    expected = ema(known)[-1] if known else None
    assert average.value == expected


@QUICK
@given(VALUES)
def test_a_window_of_one_is_the_curve_itself(values: list[float]) -> None:
    """The smallest window smooths nothing, the largest is the mean of all so far."""
    assert windowed_mean(values, 1) == values
    assert windowed_mean(values, len(values))[-1] == pytest.approx(math.fsum(values) / len(values), abs=1e-6)


@QUICK
@given(VALUES)
def test_bounds_count_what_they_cut(values: list[float]) -> None:
    """The bounds lie within the values, hold at least half of them, and say how many are outside."""
    bounds = outlier_bounds(values)
    assert bounds is not None
    assert min(values) <= bounds.low <= bounds.high <= max(values)
    assert bounds.cut == sum(not bounds.low <= v <= bounds.high for v in values) <= len(values) / 2


@QUICK
@given(st.lists(st.floats(0, 1), min_size=8, max_size=50, unique=True))
def test_a_far_point_is_cut_and_counted(values: list[float]) -> None:
    """One exploded value does not flatten the curve, and does not vanish silently."""
    bounds = outlier_bounds([*values, 1e9])
    assert bounds is not None
    assert bounds.cut >= 1
    assert bounds.high < 1e9


def test_nothing_finite_has_no_bounds() -> None:
    """Where nothing was measured there is nothing to bound."""
    assert outlier_bounds([None, math.nan]) is None


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_a_decay_that_would_never_move_is_refused(decay: float) -> None:
    """The average has to forget."""
    with pytest.raises(ValueError, match="decay"):
        Ema(decay)


def test_an_empty_window_is_refused() -> None:
    """A mean of nothing is not a number."""
    with pytest.raises(ValueError, match="window"):
        windowed_mean([1.0], 0)


@QUICK
@given(GAPPY, st.integers(4, 20))
def test_what_is_drawn_looks_like_the_whole(values: list[float | None], most: int) -> None:
    """A thinned curve has both ends, the lowest and the highest value, keeps the order and the bound."""
    places = drawn(values, most)
    known = [v for v in values if v is not None and math.isfinite(v)]
    kept = [v for k in places if (v := values[k]) is not None and math.isfinite(v)]
    assert places == sorted(set(places))
    assert len(places) <= most
    assert len(values) > most or len(places) == len(values)
    if values:
        assert (places[0], places[-1]) == (0, len(values) - 1)
    if known:
        assert (min(kept), max(kept)) == (min(known), max(known))


def test_a_curve_of_three_points_is_no_curve() -> None:
    """Two ends and two extremes are the least that can be drawn."""
    with pytest.raises(ValueError, match="at least 4"):
        drawn([1.0], 3)
