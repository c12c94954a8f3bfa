"""The critic on teams that can only wait: all there is to learn is what the future is worth."""

import pytest

from tests.probes.learning import Blind, NowOnly, Probe

HALVED = {
    shown: pytest.approx(worth, abs=0.3)
    for shown, worth in {"first": 1.0, "second": 2.0, "third": 4.0, "fourth": 8.0}.items()
}
"""What a pay of 8 at the end of four turns is worth at each of them, at γ = 0.5."""


def test_a_constant_return_is_learnt_as_the_value() -> None:
    """The critic says 8 where 8 is paid; one whose targets or gradients never reach it says something near 0."""
    assert Probe("waiting", "last_pay").train(30).values("worker") == {"first": pytest.approx(8.0, abs=0.3)}


def test_mutation_a_critic_without_a_loss_learns_no_value() -> None:
    """The probe of the constant return can fail."""
    broken = Probe("waiting", "last_pay", ppo={"vf_loss_coeff": 0.0}).train(30)
    assert broken.values("worker")["first"] < 2.0


def test_the_value_follows_the_observation() -> None:
    """2 under a red light, -1 under a blue one; a batch whose rows lost their own observations says 0.5 for both."""
    values = Probe("weather", "sunny").train(30).values("worker", by="light")
    assert values == {"red": pytest.approx(2.0, abs=0.3), "blue": pytest.approx(-1.0, abs=0.3)}


def test_mutation_a_blind_critic_says_the_same_under_every_light() -> None:
    """The probe of the observation can fail."""
    values = Probe("weather", "sunny", sight=Blind()).train(30).values("worker", by="light")
    assert values["red"] == values["blue"] == pytest.approx(0.5, abs=0.5)


def test_a_pay_in_k_turns_is_worth_gamma_to_the_k_of_it() -> None:
    """8 in three turns at γ = 0.5 is 1 now; an advantage or target that is off by one turn says 0.5 or 2."""
    assert Probe("waiting", "last_pay", rounds=4, ppo={"gamma": 0.5}).train(40).values("worker") == HALVED


def test_without_discount_a_pay_is_worth_the_same_at_every_turn() -> None:
    """And the discount is what made the difference."""
    values = Probe("waiting", "last_pay", rounds=4).train(30).values("worker")
    assert values == dict.fromkeys(("first", "second", "third", "fourth"), pytest.approx(8.0, abs=0.3))


def test_gamma_counts_an_agents_own_turns() -> None:
    """Turns of others in between do not discount: else two that take turns would say 0.5, 2 and 8, or less."""
    probe = Probe("two_waiting", "last_pay", rounds=3, ppo={"gamma": 0.5}).train(40)
    wanted = {"first": 2.0, "second": 4.0, "third": 8.0}
    for role in ("one", "two"):
        assert probe.values(role) == {seen: pytest.approx(v, abs=0.3) for seen, v in wanted.items()}


ENDLESS = {"clock": False, "rounds": 99}
"""A team whose agent cannot tell when it is, and that goes on."""


def test_a_cut_episode_is_bootstrapped() -> None:
    """1 a step for ever at γ = 0.5 is worth 2, though two steps are seen: a cut that counts as an end says 1.25."""
    probe = Probe("waiting", "steady", sight=NowOnly(), ppo={"gamma": 0.5}, max_turns=2, **ENDLESS).train(20)
    assert probe.values("worker") == {"": pytest.approx(2.0, abs=0.15)}


def test_mutation_an_episode_that_ends_is_not_bootstrapped() -> None:
    """The same two steps, but over: 1.5 and 1, which look the same to this critic."""
    probe = Probe("waiting", "steady", sight=NowOnly(), ppo={"gamma": 0.5}, rounds=2, clock=False).train(30)
    assert probe.values("worker") == {"": pytest.approx(1.25, abs=0.15)}


def test_a_fragment_that_cuts_an_episode_is_bootstrapped() -> None:
    """``truncate_episodes``: pay beyond the fragment's end counts too, else the turns before it were worth less."""
    ppo = {"gamma": 0.5, "batch_mode": "truncate_episodes", "rollout_fragment_length": 6, "train_batch_size": 96}
    assert Probe("waiting", "last_pay", rounds=4, ppo=ppo).train(40).values("worker") == HALVED
