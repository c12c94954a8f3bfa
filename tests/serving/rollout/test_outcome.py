"""What a session came to, from its records."""

import pytest

from rewards.mix import Mix, Weighted
from runtime.records import EpisodeOpened, Fault
from runtime.terms import term
from runtime.types import View
from serving.rollout.outcome import outcome_of, own_reward
from serving.rollout.settling import blind_terms
from tests.serving.rollout.sessions import records


def test_an_outcome_holds_errors_invalid_calls_and_latency() -> None:
    """Latency is from what was seen to what came of the decision."""
    outcome = outcome_of(records("s", at=100.0, took_s=0.25), "v2")
    assert outcome
    assert (outcome.session, outcome.version, outcome.opened) == ("s", "v2", 100.0)
    assert (outcome.error, outcome.degraded, outcome.invalid_calls) == (False, False, 0.0)
    assert outcome.latency_ms == pytest.approx(250)


@pytest.mark.parametrize(("code", "share"), [("bad_arguments", 1.0), ("illegal", 1.0), ("tool_failed", 0.0)])
def test_a_call_is_invalid_by_the_agents_fault_only(code: str, share: float) -> None:
    """A tool that fails is no fault of whoever asked it."""
    outcome = outcome_of(records("s", fault=Fault(code=code, message="no")), "v2")
    assert outcome
    assert outcome.invalid_calls == share


def test_a_session_that_was_given_up_or_failed_is_an_error() -> None:
    """By its records, or by the word of whoever served it."""
    for made, failed in ((records("s", given_up=True), False), (records("s"), True)):
        outcome = outcome_of(made, "v2", failed=failed)
        assert outcome
        assert outcome.error


def test_what_is_not_known_is_none() -> None:
    """A session without calls has no share of invalid ones, and no latency; one without an opening is none."""
    (opened, *_) = records("s")
    assert isinstance(opened, EpisodeOpened)
    outcome = outcome_of([opened], "v2")
    assert outcome
    assert (outcome.invalid_calls, outcome.latency_ms) == (None, None)
    assert outcome_of([], "v2") is None


def test_a_fallback_marks_the_session_as_degraded() -> None:
    """It says nothing about the version."""
    outcome = outcome_of(records("s", degraded=True), "v2")
    assert outcome
    assert outcome.degraded


def test_the_teams_own_reward_is_missing_where_a_term_is() -> None:
    """Only terms that need no truth count; one that is missing makes the sum unknown, never 0."""
    made = records("s", paid=[("cost", -1.0), ("cost", -2.0), ("right", None)])
    assert own_reward(made, {"cost"}) == -3.0
    assert own_reward(made, {"cost", "right"}) is None
    assert own_reward(made, set()) is None


def test_terms_that_read_the_truth_are_not_judged_live() -> None:
    """Nor are those that pay nothing."""

    @term(kind="outcome", reads=["truth", "outcome"], at_end=True)
    def right(view: View) -> float:
        return float(view.truth["answer"])

    @term(kind="cost")
    def cost(view: View) -> float:
        return -1.0

    assert blind_terms(Mix([Weighted(right), Weighted(cost)])) == {"cost"}
    assert blind_terms(Mix([Weighted(cost, 0.0)])) == set()
