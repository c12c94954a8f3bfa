"""What a team is paid: terms see the past only, and a missing reward is never a number."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from envs.session import Session
from rewards.mix import Mix, PastView, Weighted
from rewards.terms import TERMS, hand_overs, invalid_calls, solved, tool_cost
from runtime.errors import RewardFault
from runtime.records import Rewarded
from runtime.terms import term
from runtime.types import HAND_OVER, Paid, RewardTerm, View
from tests.envs.toys import at_once, call, opened


def paid(session: Session, mix: Mix, agent: str, action: object) -> Paid:
    since = len(session.records)
    session.act(agent, action)  # type: ignore[arg-type]
    found = mix(session, since)
    session.note(found.records)
    return found


def one(function: Callable[[View], float], **options: object) -> RewardTerm:
    return term(kind="shaping", **options)(function)  # type: ignore[arg-type]


def test_terms_are_weighted_and_summed_and_each_value_is_recorded() -> None:
    """Ten for a cure, minus what was billed: every term's share can be seen."""
    session, mix = opened(ill="flu"), Mix([Weighted(solved, 10), Weighted(tool_cost), Weighted(hand_overs, 0.5)])
    assert paid(session, mix, "nurse", call("listen", to="heart")).team == -2
    assert paid(session, mix, "nurse", call(HAND_OVER)).team == -0.5
    last = paid(session, mix, "doctor", call("treat", against="flu"))
    assert last.team == 10
    assert {r.term: r.value for r in last.records} == {"solved": 10, "tool_cost": 0, "hand_overs": 0}


def test_an_outcome_is_paid_once_at_the_end() -> None:
    """Until then the term is not judged at all, which is no zero either."""
    session, mix = opened(), Mix([Weighted(solved)])
    assert paid(session, mix, "nurse", call(HAND_OVER)).records == []


def test_team_terms_pay_everybody_in_full_and_agent_terms_one() -> None:
    """A shared reward is not divided; an own one is not shared."""
    session = opened()
    found = paid(session, Mix([Weighted(tool_cost), Weighted(invalid_calls)]), "nurse", "nonsense")
    assert (found.to("nurse"), found.to("doctor"), found.team) == (-1, 0, -1)
    found = paid(session, Mix([Weighted(tool_cost)]), "nurse", call("listen", to="heart"))
    assert (found.to("nurse"), found.to("doctor"), found.team) == (-2, -2, -2)


def test_in_a_simultaneous_round_each_agent_is_judged_on_its_own_step() -> None:
    """An agent's term sees the records of that agent's turn only."""
    session, mix = opened(at_once(3)), Mix([Weighted(invalid_calls)])
    since = len(session.records)
    session.act_all({"nurse": "nonsense", "doctor": 99})
    found = mix(session, since)
    assert found.own == {"nurse": -1, "doctor": -1}
    since = len(session.records)
    session.act_all({"nurse": 0, "doctor": "nonsense"})
    assert mix(session, since).own == {"nurse": 0, "doctor": -1}


def test_a_view_ends_at_its_step() -> None:
    """The future cannot be reached, by index, slice, length or iteration, also when it has happened."""
    session = opened()
    first = len(session.records)
    session.act("nurse", 0)
    end = len(session.records)
    session.act("nurse", 1)
    view = PastView(tool_cost, session, "nurse", 0, first, end)
    assert len(view.history) == end < len(session.records)
    assert list(view.history) == list(view.history[:]) == list(view.history[0:999]) == session.records[:end]
    assert view.history[-1] is session.records[end - 1]
    assert list(view.step) == session.records[first:end]
    for index in (end, 999, -end - 1):
        with pytest.raises(IndexError):
            view.history[index]


def test_truth_and_outcome_are_refused_to_terms_that_do_not_declare_them() -> None:
    """A term that peeks is missing, and the record says how to declare it."""
    session = opened()
    peeks = [one(lambda v: len(v.truth), name="truth"), one(lambda v: float(v.success), name="success")]
    found = paid(session, Mix([Weighted(t) for t in peeks]), "nurse", 0)
    assert math.isnan(found.team)
    assert [r.value for r in found.records] == [None, None]
    assert "without declaring it" in found.records[0].missing
    assert "without declaring it" in found.records[1].missing


def test_a_declared_truth_can_be_read() -> None:
    """Rewards may know the truth; they have to say so."""
    knows = one(lambda v: float(v.truth["ill"] == "flu"), reads=["truth"], name="knows")
    assert paid(opened(ill="flu"), Mix([Weighted(knows)]), "nurse", 0).team == 1


def test_an_outcome_is_refused_before_the_end() -> None:
    """Also to a term that declares it; and it cannot be declared to be judged on the way."""
    session = opened()
    session.act("nurse", 0)
    with pytest.raises(RewardFault, match="before the episode has ended"):
        PastView(solved, session, "nurse", 0, 1, len(session.records)).outcome  # noqa: B018
    with pytest.raises(ValueError, match="at_end=True"):
        term(kind="outcome", reads=["outcome"])


def raising(view: View) -> float:
    raise RuntimeError("judge is out")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raising, "RuntimeError: judge is out"),
        (lambda _v: math.nan, "returned nan"),
        (lambda _v: -math.inf, "returned -inf"),
        (lambda _v: None, "no number"),
        (lambda _v: "much", "no number"),
    ],
)
def test_a_missing_reward_is_never_zero(function: Callable[[View], float], why: str) -> None:
    """Whatever goes wrong in a term, the step's sum is unknown, and the record says why."""
    found = paid(opened(), Mix([Weighted(tool_cost), Weighted(one(function, name="bad"))]), "nurse", 0)
    assert math.isnan(found.team)
    assert math.isnan(found.to("doctor"))
    bad = next(r for r in found.records if r.term == "bad")
    assert bad.value is None
    assert why in bad.missing


def test_a_missing_reward_of_one_agent_leaves_the_others_known() -> None:
    """Only who was to be paid does not know."""
    bad = one(raising, scope="agent", name="bad")
    found = paid(opened(), Mix([Weighted(bad)]), "nurse", 0)
    assert math.isnan(found.to("nurse"))
    assert found.to("doctor") == 0


def test_truth_values_and_numpy_numbers_are_numbers() -> None:
    """What float() takes is taken."""
    import numpy as np

    values: list[Any] = [True, np.float32(1), np.int64(1)]
    for value in values:
        session = opened()
        assert paid(session, Mix([Weighted(one(lambda _v, x=value: x, name="t"))]), "nurse", 0).team == 1


def test_a_weight_of_zero_logs_and_pays_nothing() -> None:
    """The term is judged and recorded all the same."""
    found = paid(opened(), Mix([Weighted(tool_cost, 0)]), "nurse", call("listen", to="heart"))
    assert found.team == 0
    assert len(found.records) == 1


def test_two_terms_of_one_name_are_refused() -> None:
    """Metrics could not tell them apart."""
    with pytest.raises(ValueError, match="same name"):
        Mix([Weighted(solved), Weighted(solved)])
    assert all(name == t.name for name, t in TERMS.items())


def test_rewards_are_no_part_of_a_later_steps_own_records() -> None:
    """The records a judge adds belong to the step they judge."""
    session, mix = opened(), Mix([Weighted(tool_cost)])
    paid(session, mix, "nurse", 0)
    seen: list[int] = []
    counts = one(lambda v: seen.append(sum(isinstance(r, Rewarded) for r in v.step)) or 0.0, name="counts")
    paid(session, Mix([Weighted(counts)]), "nurse", 1)
    assert seen == [0]
