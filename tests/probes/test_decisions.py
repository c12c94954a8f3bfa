"""The policy on teams with one right thing to do."""

import numpy as np
import pytest

from runtime.records import Decided, Observed
from tests.probes.learning import NowOnly, Probe, Unmasked

UNDECIDED = (0.3, 0.7)
"""Bounds of the share of one of two buttons that a policy presses which has nothing to learn."""


def undecided(share: float) -> bool:
    return UNDECIDED[0] < share < UNDECIDED[1]


def test_what_is_paid_is_done() -> None:
    """Only the red button pays; a learner that climbs down, or mixes up actions, does not come to press it."""
    assert Probe("pressing", "red_pressed").train(20).share("worker", button="red") > 0.9


def test_mutation_what_pays_the_same_either_way_is_not_preferred() -> None:
    """The same with a pay that does not depend on the button."""
    assert undecided(Probe("pressing", "steady").train(20).share("worker", button="red"))


LATE = {"gamma": 1.0, "lambda_": 1.0}


def late(**ppo: float) -> Probe:
    """The first of four buttons decides what the end pays, and afterwards nothing shows which one it was."""
    return Probe("pressing", "first_red", rounds=4, sight=NowOnly(), ppo={**LATE, **ppo}).train(20)


def test_a_pay_k_turns_later_reaches_the_turn_that_earned_it() -> None:
    """With λ = γ = 1 the end's pay is credited three turns back; a shorter return leaves the first button open."""
    assert late().share("worker", button="red") > 0.9


@pytest.mark.parametrize("broken", [{"lambda_": 0.0}, {"gamma": 0.0}])
def test_mutation_without_lambda_or_gamma_the_late_pay_is_not_credited(broken: dict[str, float]) -> None:
    """No later state tells the critic what was pressed, so one-step returns carry nothing back."""
    assert undecided(late(**broken).share("worker", button="red"))


def test_a_message_comes_to_mean_something() -> None:
    """The watcher sees, the namer is right or wrong, and only a word connects them: by chance half are right."""
    assert Probe("telegraph", "right", ppo={"train_batch_size": 256}).train(30).success() > 0.9


def test_mutation_with_one_word_only_nothing_can_be_told() -> None:
    """The same with a word that is always the same: half are right, whatever is learnt."""
    mute = Probe("telegraph", "right", ppo={"train_batch_size": 256}, words=("seen",)).train(30)
    assert mute.success() < 0.65


def test_only_the_agent_that_earned_a_pay_is_paid() -> None:
    """The earner is paid, and more if the bystander presses red: that is no reason for the bystander to do so."""
    probe = Probe("neighbours", "paid_one").train(20)
    assert probe.share("earner", button="red") > 0.9
    assert undecided(probe.share("bystander", button="red"))
    assert probe.values("bystander")["first"] == pytest.approx(0.0, abs=0.2)


def test_mutation_where_all_are_paid_the_bystander_acts_for_it() -> None:
    """The same pay as the team's: now pressing red is in the bystander's interest."""
    assert Probe("neighbours", "paid_all").train(20).share("bystander", button="red") > 0.9


def test_what_is_masked_is_never_done() -> None:
    """The chest pays most and may be opened once: not in training, nor drawn, nor greedily is it tried again.

    The mask changes with every turn, so one that lags behind or is lost in a batch shows at once.
    """
    probe = Probe("treasure", "chest").train(20)
    greedy = probe.play(50, greedy=True)
    played = [*probe.play(50), *greedy]
    masks = {r.mask for p in played for r in p.records if isinstance(r, Observed)}
    assert len(masks) > 3
    assert sum(p.invalid().total() for p in played) == 0
    assert {p.calls()["worker", "open_chest"] for p in greedy} == {1}
    for episode in played:
        assert _illegal_chances(episode.records) == {0.0}


def _illegal_chances(records: object) -> set[float]:
    """The probabilities that the policy gave to what was illegal."""
    found: set[float] = set()
    mask: tuple[bool, ...] = ()
    for record in records:  # type: ignore[attr-defined]
        if isinstance(record, Observed):
            mask = record.mask
        elif isinstance(record, Decided) and record.probabilities is not None:
            found |= set(np.asarray(record.probabilities)[~np.asarray(mask)].tolist())
    return found or {0.0}


def test_mutation_a_policy_that_is_not_told_the_mask_tries_again() -> None:
    """The greedy one opens the chest at every turn, and is refused."""
    probe = Probe("treasure", "chest", sight=Unmasked()).train(20)
    assert sum(p.invalid().total() for p in probe.play(50, greedy=True)) > 0
