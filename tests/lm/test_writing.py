"""Calls written token by token: only legal ones, by keyed chance, and learned as they were written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from policies.lm.grammar import CallGrammar, schema_of
from policies.lm.layout import PAD
from policies.lm.playing import WritingPolicy, network_of
from policies.lm.writing import Writer
from policies.playing import Turn
from runtime.tools import Contract, parse_call
from tests.lm.shop import WARMUP, shop
from tests.lm.small import LINES, ROLE, prompter, seen, spec_of, turns
from trainers.play import play
from trainers.rllib.algorithm import make_adapter
from trainers.rllib.lm_tokens import TOKEN_ADVANTAGES, token_advantages

KEYS = [(0, "case", "triage", i) for i in range(5)]
EVERY = torch.ones(5, 3, dtype=torch.bool)
ARGUMENTS = {
    "search": {
        "$defs": {"Where": {"enum": ["port", "site"], "type": "string"}},
        "properties": {"where": {"$ref": "#/$defs/Where"}, "title": {"type": "string", "title": "Title"}},
        "required": ["where"],
        "additionalProperties": False,
        "type": "object",
    }
}


def writer(path: str) -> Writer:
    made: Any = network_of(spec_of(path, mode="generate", texts=ROLE.calls, longest=24))
    chance: Any = torch
    chance.manual_seed(1)
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return made


def test_what_is_written_is_always_a_legal_call(tiny: str) -> None:
    """Under whatever mask, drawn or greedy: JSON that the session takes, and no other call."""
    net = writer(tiny)
    for only in (0, 1, 2):
        legal = torch.zeros(5, 3, dtype=torch.bool)
        legal[:, only] = True
        legal[0] = True
        for keys in (KEYS, None):
            texts = net.spoken(net.write(seen(tiny, turns()), legal, keys).tokens)
            assert all(text in ROLE.calls for text in texts)
            assert set(texts[1:]) == {ROLE.calls[only]}
            assert not [t for t in texts if not hasattr(parse_call(t), "tool")]


def test_learning_goes_along_what_was_written_with_the_same_probabilities(tiny: str) -> None:
    """Teacher forcing under the same grammar gives each token's log-probability to 1e-4, and sums to the call's."""
    net = writer(tiny)
    tokens = seen(tiny, turns())
    said = net.write(tokens, EVERY, KEYS)
    with torch.no_grad():
        found = net.follow(tokens, EVERY, torch.from_numpy(said.tokens))
    width = found.logp.shape[1]
    assert found.logp.numpy() == pytest.approx(said.logp[:, :width], abs=1e-4)
    assert (said.logp[:, width:] == 0).all()
    assert (found.entropy >= 0).all()
    assert said.logp.sum(1).min() < -0.5, "something was drawn"


def test_probabilities_are_those_of_the_plain_model_among_the_allowed(tiny: str) -> None:
    """Token by token, with nothing shared and nothing kept."""
    net, made = writer(tiny), prompter(tiny)
    said = net.write(seen(tiny, turns()), EVERY, KEYS)
    grammar = CallGrammar(tiny, ROLE.calls, "{}", net.grammar.size)
    for row, text in enumerate(turns()):
        call = [t for t in said.tokens[row].tolist() if t != PAD]
        (matcher,) = grammar.matchers(np.ones((1, 3), bool))
        for place, token in enumerate(call):
            ids = torch.tensor([[*made.head, *made(text), *made.tail, *call[:place]]])
            with torch.no_grad(), net.weights.used() as model:
                logits = model(ids).logits[0, -1].double()
            allowed = torch.from_numpy(grammar.allowed([matcher])[0])
            logp = torch.log_softmax(logits.masked_fill(~allowed, -torch.inf), -1)
            assert float(said.logp[row, place]) == pytest.approx(float(logp[token]), abs=1e-4)
            assert matcher.accept_token(token)
        assert matcher.is_terminated()


def test_a_call_depends_on_its_own_key_and_nothing_else(tiny: str) -> None:
    """Alone, in a batch, or in another order."""
    net, tokens = writer(tiny), seen(tiny, turns())
    whole = net.write(tokens, EVERY, KEYS).tokens
    for i in range(5):
        assert (net.write(tokens[[i]], EVERY[[i]], [KEYS[i]]).tokens[0] == whole[i]).all()
    again = [(0, f"case {i}", "triage", 0) for i in range(60)]
    many = net.spoken(net.write(tokens[[0] * 60], EVERY[[0] * 60], again).tokens)
    assert len(set(many)) == 3, "chance is drawn"
    same = net.spoken(net.write(tokens[[0] * 60], EVERY[[0] * 60], None).tokens)
    assert len(set(same)) == 1


def test_a_call_that_is_not_complete_in_time_is_malformed(tiny: str) -> None:
    """And is answered as such; its tokens are learned from all the same."""
    made: Any = network_of(spec_of(tiny, mode="generate", texts=ROLE.calls, longest=2))
    text = made.spoken(made.write(seen(tiny, turns()), EVERY, KEYS).tokens)[0]
    assert getattr(parse_call(text), "code", "") == "malformed"


def test_tools_that_take_free_arguments_may_be_called_with_any_that_fit() -> None:
    """And, once some of their candidates are gone, with those that are left."""
    calls = ('{"tool": "look"}', *(json.dumps({"tool": "search", "args": {"where": w}}) for w in ("port", "site")))
    free = Contract(schema_of(calls, ARGUMENTS, (True, True, True)))
    some = Contract(schema_of(calls, ARGUMENTS, (False, True, False)))
    asked = {"tool": "search", "args": {"where": "site", "title": "storm"}}
    assert free.problem(asked) is None
    assert free.problem({"tool": "look"}) is None
    assert free.problem({"tool": "search", "args": {"where": "moon"}}) is not None
    assert some.problem({"tool": "search", "args": {"where": "port"}}) is None
    assert [some.problem(c) for c in (asked, {"tool": "look"})].count(None) == 0


def test_inside_a_call_nothing_is_discounted(tiny: str) -> None:
    """A token's advantage is the call's λ-return minus the value before the token."""
    calls = torch.tensor([[3, 4, 1], [5, 1, PAD]])
    batch = {"actions": calls, "value_targets": torch.tensor([2.0, -1.0])}
    values = torch.tensor([[0.5, 1.0, 1.5], [0.0, -0.5, 9.0]])
    found = token_advantages(values, batch, normalize=False)
    assert found.tolist() == [[1.5, 1.0, 0.5], [-1.0, -0.5, 0.0]]
    real = token_advantages(values, batch, normalize=True)[calls != PAD]
    assert float(real.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(real.std(correction=0)) == pytest.approx(1.0, abs=1e-5)


def test_learner_and_sampler_agree_on_every_token_before_the_first_update(tmp_path: Path) -> None:
    """And what is learned is what is played."""
    made = shop(tmp_path, mode="generate", call_tokens="40")
    fragments = made.runner.sample(num_timesteps=60)
    made.learner.before_gradient_based_update(timesteps={})
    for mid, batch in made.learner._batches(fragments).items():
        with torch.no_grad():
            out = made.learner.module[mid]._forward_train(batch)["action_dist_inputs"]
        assert out[..., 0].numpy() == pytest.approx(batch["action_logp"].numpy(), abs=1e-4)
        assert batch[TOKEN_ADVANTAGES].shape == batch["actions"].shape
    before = made.learner.policy_hashes()
    made.learner.update(episodes=fragments, num_epochs=1, minibatch_size=32, timesteps={})
    assert all(before[m] != h for m, h in made.learner.policy_hashes().items())
    made.sync()
    assert made.runner.policy_hashes() == made.learner.policy_hashes()


def test_a_minibatch_in_many_passes_is_one_gradient_step(tmp_path: Path) -> None:
    """Also where calls have different lengths: the mean is over tokens."""
    made = [shop(tmp_path, mode="generate", call_tokens="40", chunk=chunk) for chunk in ("100000", "256")]
    fragments = made[0].runner.sample(num_timesteps=40)
    made[1].learner.set_state(made[0].learner.get_state())
    for each in made:
        each.learner.update(episodes=fragments, num_epochs=1, minibatch_size=32, timesteps={})
    for mid in ("buyer", "clerk"):
        pairs = zip(*(m.learner.module[mid].parameters() for m in made), strict=True)
        assert all(p.detach().numpy() == pytest.approx(q.detach().numpy(), abs=3e-5) for p, q in pairs)


def test_after_a_warm_start_the_team_writes_what_the_expert_calls(tmp_path: Path) -> None:
    """On cases that it was not shown."""
    made = shop(tmp_path, warm=True, mode="generate", call_tokens="40", warmup=WARMUP.replace("epochs: 4", "epochs: 8"))
    states = made.learner.get_state(components="rl_module")["rl_module"]
    policies = {n: s.policy(s.actor(states[n])) for n, s in made.seats.items()}
    assert all(isinstance(p, WritingPolicy) for p in policies.values())
    played = list(play(lambda: make_adapter(made.build, "eval"), policies, range(30), seed=0, greedy=True))
    assert sum(p.success for p in played) >= 28


def test_a_written_call_says_how_likely_it_was(tiny: str) -> None:
    """The sum over its tokens."""
    from policies.lm.featurize import PromptFeatures, PromptFeaturizer

    net = writer(tiny)
    policy = WritingPolicy(net, PromptFeaturizer(PromptFeatures(tiny, ROLE, 512)))
    turn = Turn("triage", {"text": LINES[0], "action_mask": np.ones(3, np.int8)}, (0, "case"), 0)
    (choice,) = policy.decide([turn], greedy=True)
    assert choice.action in ROLE.calls
    said = net.write(seen(tiny, LINES[:1]), EVERY[:1], None)
    assert choice.logp == pytest.approx(float(said.logp.sum()), abs=1e-5)
