"""From scores and chance to a candidate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from scipy.stats import chisquare

from policies.choice import ILLEGAL, choose, log_probabilities, log_probability
from runtime.seams import uniform

scores = st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=8)
chances = st.floats(0, 1, exclude_max=True)


def chosen(logits: list[float], chance: float) -> int:
    return int(choose(np.array([logits], np.float32), np.array([chance]))[0])


def test_keyed_chance_gives_the_distribution_of_softmax() -> None:
    """30,000 decisions, drawn as training draws them: chi-square finds no difference."""
    logits = np.array([0.0, 1.0, ILLEGAL, -2.0, 0.5], np.float32)
    chance = np.array([uniform(7, f"case {i}", "triage", 2) for i in range(30_000)])
    counts = np.bincount(choose(np.tile(logits, (len(chance), 1)), chance), minlength=5)
    legal = [0, 1, 3, 4]
    expected = np.exp(log_softmax(logits[legal].astype(np.float64))) * len(chance)
    assert counts[2] == 0
    assert chisquare(counts[legal], expected).pvalue > 0.001


@given(scores, st.integers(0, 7), chances)
def test_what_is_illegal_is_never_chosen(logits: list[float], place: int, chance: float) -> None:
    """Whatever the chance, its extremes included."""
    logits[place % len(logits)] = ILLEGAL
    for at in (chance, 0.0, np.nextafter(1.0, 0.0)):
        assert chosen(logits, at) != place % len(logits)


@pytest.mark.parametrize("only", range(4))
def test_a_single_legal_candidate_is_chosen(only: int) -> None:
    """First or last, and however bad."""
    logits = [ILLEGAL] * 4
    logits[only] = -50.0
    assert {chosen(logits, c) for c in (0.0, 0.5, np.nextafter(1.0, 0.0))} == {only}


@given(scores, chances, chances)
def test_more_chance_never_gives_an_earlier_candidate(logits: list[float], one: float, other: float) -> None:
    """The inverse of a cumulative distribution is monotone."""
    low, high = sorted((one, other))
    assert chosen(logits, low) <= chosen(logits, high)


@given(scores, chances, st.lists(scores, max_size=5))
def test_a_choice_does_not_depend_on_the_batch(logits: list[float], chance: float, others: list[list[float]]) -> None:
    """Alone or among others, first or last."""
    rows = [(o + [0.0] * len(logits))[: len(logits)] for o in others]
    batch = np.array([*rows, logits, *rows], np.float32)
    together = choose(batch, np.full(len(batch), chance))
    assert together[len(rows)] == chosen(logits, chance)


@given(scores, st.integers(0, 7))
def test_log_probabilities_are_those_of_log_softmax(logits: list[float], place: int) -> None:
    """And the one of an illegal candidate is that of nothing."""
    place %= len(logits)
    logits[place] = ILLEGAL
    array = np.array([logits], np.float32)
    found = log_probabilities(array)
    assert found == pytest.approx(log_softmax(array.astype(np.float64), axis=1), abs=1e-6, rel=1e-6)
    assert np.exp(found[0, place]) == 0.0
    legal = (place + 1) % len(logits)
    assert log_probability(array, np.array([legal]))[0] == pytest.approx(found[0, legal], abs=1e-5)
