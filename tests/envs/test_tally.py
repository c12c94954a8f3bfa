"""What is summed up over episodes: for each agent by itself where it is paid by itself."""

from types import SimpleNamespace
from typing import Any

from envs.tally import KEPT_RETURNS, LOOKED_AT, Tally
from runtime.records import Rewarded


def played(*paid: tuple[str, int, str, float | None, str]) -> Any:
    """An episode with those rewards: agent, turn, term, value, scope."""
    records = [
        Rewarded(correlation_id="e", at=0.0, agent=agent, turn=turn, term=term, value=value, scope=scope)
        for agent, turn, term, value, scope in paid
    ]
    return SimpleNamespace(records=records, success=True)


def test_an_agent_is_paid_what_goes_to_everybody_and_what_is_its_own() -> None:
    """A team's term counts for all, an agent's for that agent alone; parts from several runners add up."""
    parts = [Tally(), Tally()]
    parts[0].add(played(("a", 0, "payoff", 10.0, "team"), ("a", 0, "thrift", -1.0, "agent")), 9.0)
    parts[1].add(played(("b", 0, "payoff", 4.0, "team"), ("b", 0, "thrift", -3.0, "agent")), 1.0)
    tally = Tally.total(parts)
    assert tally.terms == {"payoff": 14.0, "thrift": -4.0}
    assert tally.paid_to("a") == {"payoff": 14.0, "thrift": -1.0}
    assert tally.paid_to("b") == {"payoff": 14.0, "thrift": -3.0}
    assert tally.paid_to("nobody") == {"payoff": 14.0, "thrift": 0.0}


def test_rewards_are_kept_by_decision_and_no_missing_one_is_zero() -> None:
    """The terms of a decision are one reward; a decision whose term was missing has none; a histogram has its bound."""
    tally = Tally()
    tally.add(
        played(
            ("a", 0, "payoff", 2.0, "team"),
            ("a", 0, "thrift", -0.5, "agent"),
            ("a", 1, "payoff", None, "team"),
            ("a", 1, "thrift", 1.0, "agent"),
            ("b", 0, "thrift", 0.0, "agent"),
        ),
        0.0,
    )
    assert tally.rewards == {"a": [1.5], "b": [0.0]}
    many = Tally()
    for _ in range(LOOKED_AT + 9):
        many.add(played(("a", 0, "payoff", 1.0, "team")), 1.0)
    assert many.rewards == {"a": [1.0] * LOOKED_AT}
    assert many.terms == {"payoff": LOOKED_AT + 9}
    assert len(Tally.total([many] * 20).rewards["a"]) == KEPT_RETURNS
