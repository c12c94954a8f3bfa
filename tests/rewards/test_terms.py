"""The library's reward terms, and a mix over whole episodes."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.session import Session
from rewards.mix import Mix, Weighted
from rewards.terms import TERMS, hand_overs, invalid_calls, solved, tool_cost
from runtime.records import Rewarded
from runtime.types import HAND_OVER, Paid
from tests.envs.toys import call, opened, rounds

LISTEN, TAKE, NONSENSE = call("listen", to="heart"), call("take_temperature"), "nonsense"
OVER, TREAT = call(HAND_OVER), call("treat", against="flu")


def paid_along(session: Session, mix: Mix, actions: Sequence[Any]) -> list[Paid]:
    """What each step was worth."""
    found: list[Paid] = []
    for action in actions:
        since = len(session.records)
        session.act(session.to_act[0], action)
        found.append(mix(session, since))
        session.note(found[-1].records)
    return found


def total(pay: Sequence[Paid]) -> float:
    return sum(p.team for p in pay)


def test_the_librarys_terms_add_up_over_an_episode() -> None:
    """Two calls for 1 and 2 dollars, one that is nonsense, one hand-over, and a cure."""
    steps = [TAKE, LISTEN, NONSENSE, OVER, TREAT]
    worth = {n: total(paid_along(opened(ill="flu"), Mix([Weighted(t)]), steps)) for n, t in TERMS.items()}
    assert worth == {"solved": 1.0, "tool_cost": -3.0, "invalid_calls": -1.0, "hand_overs": -1.0}


def test_a_wrong_cure_is_not_solved() -> None:
    """The outcome term pays 0 then, which is a number and no gap."""
    pay = paid_along(opened(ill="gout"), Mix([Weighted(solved)]), [OVER, TREAT])
    assert [r.value for p in pay for r in p.records] == [0.0]


@settings(max_examples=20)
@given(st.lists(st.floats(-100, 100), min_size=4, max_size=4))
def test_a_mix_is_the_weighted_sum_of_its_terms(weights: list[float]) -> None:
    """No term changes what another one says."""
    terms, steps = [solved, tool_cost, invalid_calls, hand_overs], [TAKE, NONSENSE, OVER, TREAT]
    whole = paid_along(opened(), Mix([Weighted(t, w) for t, w in zip(terms, weights, strict=True)]), steps)
    alone = [paid_along(opened(), Mix([Weighted(t)]), steps) for t in terms]
    for agent in ("nurse", "doctor"):
        wanted = [sum(w * pay[i].to(agent) for w, pay in zip(weights, alone, strict=True)) for i in range(len(steps))]
        assert [p.to(agent) for p in whole] == pytest.approx(wanted, abs=1e-9)


def test_a_steps_pay_is_the_sum_of_its_records() -> None:
    """What can be seen of each term is all there is: nothing is paid that no record tells."""
    for pay in paid_along(opened(), Mix([Weighted(t, 0.5) for t in TERMS.values()]), [TAKE, NONSENSE, OVER, TREAT]):
        assert pay.team == pytest.approx(sum(r.value for r in pay.records if r.value is not None))
        assert all(isinstance(r, Rewarded) and r.correlation_id for r in pay.records)


def test_an_agents_own_term_judges_each_agents_own_turns() -> None:
    """In a round, each is answerable for its own nonsense."""
    pay = paid_along(opened(rounds()), Mix([Weighted(invalid_calls)]), [TAKE, NONSENSE])
    assert [p.to("nurse") for p in pay] == [0.0, 0.0]
    assert [p.to("doctor") for p in pay] == [0.0, -1.0]


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_a_weight_that_is_no_number_pays_no_number(weight: float) -> None:
    """It can never pass for a reward: a sum with it is not finite."""
    pay = paid_along(opened(), Mix([Weighted(tool_cost, weight)]), [LISTEN])
    assert not math.isfinite(pay[0].team)
