"""Scores: however prompts and calls share their reading, each is scored as if it stood alone."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from policies.choice import ILLEGAL
from policies.lm.batches import in_parts, parts_of
from policies.lm.layout import PAD, TOGETHER, chains
from policies.lm.tree import call_tree
from tests.lm.small import by_hand, network, seen, turns

EVERY = torch.ones(5, 3, dtype=torch.bool)


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("score", ["sum", "mean"])
def test_calls_score_as_if_each_were_read_behind_its_own_prompt(tiny: str, lora: bool, score: str) -> None:
    """Head encoded once, turns of an episode in one row, calls as one tree: to 1e-4 the same."""
    net = network(tiny, lora, score=score)
    with torch.no_grad():
        shared, _ = net.scores(seen(tiny, turns()), EVERY)
        alone = by_hand(net, turns())
    assert shared.numpy() == pytest.approx(alone.numpy(), abs=1e-4)
    assert alone.std() > 0.01, "the comparison can fail"


def test_gradients_are_those_of_reading_everything_anew(tiny: str) -> None:
    """Through the shared head, too."""
    shared, alone = network(tiny), network(tiny)
    shared.scores(seen(tiny, turns()), EVERY)[0].square().sum().backward()
    by_hand(alone, turns()).square().sum().backward()
    for (name, one), other in zip(shared.named_parameters(), alone.parameters(), strict=True):
        assert one.grad.numpy() == pytest.approx(
            other.grad.numpy(), rel=1e-3, abs=1e-3 * float(other.grad.abs().max())
        ), name


def test_checkpointed_activations_change_nothing_but_memory(tiny: str) -> None:
    """Scores and gradients are the same, with the head in every row."""
    plain, thrifty = network(tiny), network(tiny, checkpointing=True)
    layers = [m for m in thrifty.weights.lm.modules() if getattr(m, "gradient_checkpointing", False)]
    assert layers, "otherwise nothing is tried here"
    found = [net.scores(seen(tiny, turns()), EVERY)[0] for net in (plain, thrifty)]
    assert found[0].detach().numpy() == pytest.approx(found[1].detach().numpy(), abs=1e-4)
    for scores in found:
        scores.sum().backward()
    for one, other in zip(plain.parameters(), thrifty.parameters(), strict=True):
        assert one.grad.numpy() == pytest.approx(other.grad.numpy(), rel=1e-3, abs=1e-3)


def test_an_illegal_call_is_never_chosen_and_changes_no_other_score(tiny: str) -> None:
    """Its probability is 0."""
    net, legal = network(tiny), EVERY.clone()
    legal[:, 1] = False
    with torch.no_grad():
        free, _ = net.scores(seen(tiny, turns()), EVERY)
        masked, _ = net.scores(seen(tiny, turns()), legal)
    assert (masked[:, 1] == ILLEGAL).all()
    assert masked[:, [0, 2]].equal(free[:, [0, 2]])
    assert (masked.softmax(-1)[:, 1] == 0).all()


def test_the_head_is_read_anew_when_a_weight_has_changed(tiny: str) -> None:
    """By an optimizer, by loading, or in place: what was kept of it is never stale."""
    for lora in (False, True):
        net, tokens = network(tiny, lora), seen(tiny, turns())
        with torch.no_grad():
            before = net.scores(tokens, EVERY)[0]
            assert net.scores(tokens, EVERY)[0].equal(before)
        saved = {k: v.clone() for k, v in net.state_dict().items()}
        adam = torch.optim.Adam(net.parameters(), lr=0.05, fused=True)
        net.scores(tokens, EVERY)[0].sum().backward()
        adam.step()
        with torch.no_grad():
            after = net.scores(tokens, EVERY)[0]
            assert after.numpy() == pytest.approx(by_hand(net, turns()).numpy(), abs=1e-3)
            net.load_state_dict(saved)
            assert net.scores(tokens, EVERY)[0].equal(before)
        assert not after.equal(before)


def test_policies_on_one_base_keep_their_own_adapters(tiny: str) -> None:
    """One copy of the base in memory; what one learns the other does not, and both get gradients."""
    one, other = network(tiny, True), network(tiny, True)
    tokens = seen(tiny, turns())
    with one.weights.used() as mine:
        first = mine
    with other.weights.used() as theirs:
        assert theirs is first
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(2.0)
        kept = one.scores(tokens, EVERY)[0]
        assert not other.scores(tokens, EVERY)[0].equal(kept)
        assert one.scores(tokens, EVERY)[0].equal(kept)
    loss = one.scores(tokens, EVERY)[0].sum()
    loss.backward()
    other.scores(tokens, EVERY)[0].sum().backward()
    for net in (one, other):
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
    assert sum(p.numel() for p in one.parameters()) < 0.1 * sum(p.numel() for p in first.parameters())


@pytest.mark.parametrize("lora", [False, True])
def test_the_reference_is_the_model_that_training_began_with(tiny: str, lora: bool) -> None:
    """Adapters off, or a second copy; afterwards the policy is itself again, and all of it trains."""
    from policies.lm.playing import network_of
    from tests.lm.small import spec_of

    net, tokens = network(tiny, lora), seen(tiny, turns())
    with torch.no_grad():
        now = net.scores(tokens, EVERY)[0]
        with net.as_reference():
            then = net.scores(tokens, EVERY)[0]
        fresh = network_of(spec_of(tiny)).scores(tokens, EVERY)[0]
        assert then.equal(fresh)
        assert net.scores(tokens, EVERY)[0].equal(now)
    assert not then.equal(now)
    assert all(p.requires_grad for p in net.parameters())


def test_adapters_are_taken_off_when_nobody_uses_them_any_more(tiny: str) -> None:
    """An evaluation makes a copy of the policies each time."""
    import gc

    kept: Any = network(tiny, True)
    base = kept.weights._base[0]
    for _ in range(3):
        network(tiny, True)
    gc.collect()
    assert len(base.peft.peft_config) <= 2
    with torch.no_grad():
        assert kept.scores(seen(tiny, turns()), EVERY)[0].isfinite().all()


def test_parts_hold_every_row_once_and_keep_an_episodes_turns_together(tiny: str) -> None:
    """Rows of like length together, within the bound, and put back in order."""
    net = network(tiny)
    tokens = seen(tiny, turns() * 3)
    parts = parts_of(tokens, net.block, 150)
    assert sorted(torch.cat(parts).tolist()) == list(range(15))
    assert len(parts) > 1
    lengths = (tokens != PAD).sum(1)
    longest = [int(lengths[p].max()) for p in parts]
    assert all(a <= b + net.block for a, b in pairwise(longest))
    with torch.no_grad():
        whole = net.scores(tokens, EVERY.repeat(3, 1))[0]
        pieces = in_parts(
            network(tiny, chunk=150), tokens, lambda at: net.scores(tokens[at], EVERY.repeat(3, 1)[at])[0]
        )
    assert pieces.numpy() == pytest.approx(whole.numpy(), abs=1e-4)


def test_chains_are_the_prompts_that_go_on_from_each_other(tiny: str) -> None:
    """Wherever they stand in the batch."""
    found = [sorted(c.tolist()) for c in chains(seen(tiny, turns()))]
    assert sorted(found) == [[0, 2, 3], [1, 4]]


def test_prompts_that_are_all_the_same_share_rows_of_bounded_length(tiny: str) -> None:
    """A team that sees one and the same thing for ever costs no more than any other."""
    tokens = seen(tiny, turns()[:1] * 100)
    assert max(map(len, chains(tokens))) <= TOGETHER
    with torch.no_grad():
        scores = network(tiny).scores(tokens, torch.ones(100, 3, dtype=torch.bool))[0]
    assert scores.numpy() == pytest.approx(scores[:1].expand(100, -1).numpy(), abs=1e-4)


def test_a_tree_holds_each_common_beginning_once() -> None:
    """And refuses calls that cannot be told apart."""
    tree = call_tree([(1, 2, 3), (1, 2, 4), (5,)])
    assert tree.tokens.tolist() == [1, 2, 3, 4, 5]
    assert tree.parent.tolist() == [-1, 0, 1, 1, -1]
    assert tree.depth.tolist() == [0, 1, 2, 2, 0]
    assert tree.lengths.tolist() == [3, 3, 1]
    assert tree.reach[3].tolist() == [True, True, False, True, False]
    wrong: Any
    for wrong in ([(1,), (1,)], [(1,), (1, 2)], [()]):
        with pytest.raises(ValueError, match="no tokens, or is the same"):
            call_tree(wrong)
