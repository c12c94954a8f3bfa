"""Policies at play: the same turn gets the same choice, wherever and beside whomever it is decided."""

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from policies.playing import RandomPolicy, RulePolicy, Turn
from runtime.records import ToolCall
from runtime.types import Observation
from tests.policies.small import CANDIDATES, policy, turns


@pytest.mark.parametrize("greedy", [True, False])
def test_a_batch_of_64_decides_as_64_batches_of_one(greedy: bool) -> None:
    """In whatever order: the actions are equal, the probabilities to rounding."""
    whole = policy().decide(turns(), greedy)
    alone = [policy().decide([t], greedy)[0] for t in turns()]
    backwards = list(policy().decide(turns()[::-1], greedy))[::-1]
    assert [c.action for c in whole] == [c.action for c in alone] == [c.action for c in backwards]
    assert [c.logp for c in whole] == pytest.approx([c.logp for c in alone], abs=1e-5)


def test_greedy_takes_the_likeliest_and_drawn_takes_all_in_turn() -> None:
    """One case decided under many keys: greedily always the same, else each as often as it is likely."""
    one = turns(1)[0]
    again = [replace(one, key=(seed, "case")) for seed in range(4000)]
    greedy, drawn = policy().decide(again, greedy=True), policy().decide(again, greedy=False)
    chances = drawn[0].probabilities
    assert chances is not None
    assert {c.action for c in greedy} == {int(np.argmax(chances))}
    shares = np.bincount([c.action for c in drawn], minlength=CANDIDATES) / len(drawn)
    assert shares == pytest.approx(chances, abs=0.03)


def test_a_choice_depends_on_the_whole_key() -> None:
    """Seed, scenario, agent and turn."""
    one = turns(2)[1]
    others = [
        replace(one, key=(4, "case 1")),
        replace(one, key=(3, "case 2")),
        replace(one, agent="b"),
        replace(one, turn=9),
    ]
    assert len({t.chance for t in [one, *others]}) == 5
    assert replace(one).chance == one.chance


@pytest.mark.parametrize("greedy", [True, False])
def test_nothing_illegal_is_chosen_and_the_record_says_how_likely_it_was(greedy: bool) -> None:
    """Probabilities sum to 1, are 0 where illegal, and ``logp`` is the chosen one's."""
    for turn, choice in zip(turns(), policy().decide(turns(), greedy), strict=True):
        assert turn.seen["action_mask"][choice.action] == 1
        assert choice.probabilities is not None
        assert choice.logp is not None
        assert sum(choice.probabilities) == pytest.approx(1.0, abs=1e-5)
        assert choice.probabilities[choice.action] == pytest.approx(math.exp(choice.logp), abs=1e-6)
        assert all(p == 0 for p, legal in zip(choice.probabilities, turn.seen["action_mask"], strict=True) if not legal)


def test_a_random_policy_is_uniform_over_the_legal_and_repeatable() -> None:
    """By each turn's own key."""
    many = turns(4000)
    chosen = RandomPolicy().decide(many, greedy=False)
    assert chosen == RandomPolicy().decide(many, greedy=True)
    assert all(t.seen["action_mask"][c.action] == 1 for t, c in zip(many, chosen, strict=True))
    shares = np.bincount([c.action for c in chosen], minlength=CANDIDATES) / len(many)
    assert shares == pytest.approx([0.25] * CANDIDATES, abs=0.03)
    assert chosen[0].logp == pytest.approx(-math.log(3))


def test_where_there_is_no_mask_a_random_policy_samples_the_space() -> None:
    """Seeded by the key; without either it says what it needs."""
    unmasked = [Turn("a", np.zeros(2), (1, i), 0) for i in range(3)]
    seeds = [c.action for c in RandomPolicy(lambda seed: seed).decide(unmasked, greedy=False)]
    assert len(set(seeds)) == 3
    assert seeds == [c.action for c in RandomPolicy(lambda seed: seed).decide(unmasked, greedy=False)]
    with pytest.raises(TypeError, match="an action mask or a space"):
        RandomPolicy().decide(unmasked, greedy=False)


def observed(turn: Turn) -> Observation:
    return Observation(agent=turn.agent, turn=turn.turn, seen=(), candidates=(), mask=(True,))


def test_a_rule_gets_the_observation_and_chance_of_its_own() -> None:
    """The same turn, the same chance; another turn, another."""

    def rule(seen: Observation, rng: Random) -> int:
        return seen.turn * 1000 + rng.randrange(1000)

    seen = [replace(t, observation=lambda t=t: observed(t)) for t in turns(6)]
    chosen = [c.action for c in RulePolicy(rule).decide(seen, greedy=True)]
    assert chosen == [c.action for t in seen for c in RulePolicy(rule).decide([t], greedy=False)]
    assert [a // 1000 for a in chosen] == [t.turn for t in seen]
    assert len({a % 1000 for a in chosen}) > 3


def test_a_rule_may_name_any_call() -> None:
    """Also one that is no candidate; and it needs a team's observation."""
    call = ToolCall(tool="get_order")
    turn = turns(1)[0]
    assert (
        RulePolicy(lambda *_: call).decide([replace(turn, observation=lambda: observed(turn))], True)[0].action is call
    )
    with pytest.raises(TypeError, match="a scripted policy needs a team's observations"):
        RulePolicy(lambda *_: 0).decide([turn], greedy=True)
