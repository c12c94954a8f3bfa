"""The encoder's networks: masks, the first policy, shapes."""

import torch

from policies.choice import ILLEGAL
from policies.encoder import Actor, Critic, EncoderSpec
from tests.policies.small import CANDIDATES, SPEC, actor


def test_what_is_illegal_gets_no_probability_and_no_gradient() -> None:
    """Also where ``legal`` comes as 0 and 1; the legal scores are what they are without a mask."""
    net, features = actor(), torch.randn(5, SPEC.features)
    legal = torch.tensor([[1, 0, 1, 0]]).expand(5, CANDIDATES)
    scores = net(features, legal)
    assert (scores[:, [1, 3]] == ILLEGAL).all()
    assert torch.equal(scores[:, [0, 2]], net(features)[:, [0, 2]])
    assert torch.equal(scores, net(features, legal.bool()))
    chances = scores.softmax(-1)
    assert (chances[:, [1, 3]] == 0).all()
    chances[:, 0].sum().backward()
    last = net.net[-1]
    assert isinstance(last, torch.nn.Linear)
    assert last.bias.grad is not None
    assert last.bias.grad[[1, 3]].tolist() == [0.0, 0.0]


def test_a_fresh_policy_is_about_uniform_over_the_legal() -> None:
    """Everything is tried at first."""
    torch.manual_seed(1)
    chances = Actor(SPEC)(torch.randn(20, SPEC.features), torch.tensor([1, 1, 0, 1])).softmax(-1)
    assert (chances[:, [0, 1, 3]] - 1 / 3).abs().max() < 0.02


def test_a_gaussian_policy_has_a_spread_of_its_own() -> None:
    """Means, then log standard deviations that depend on no observation."""
    spec = EncoderSpec(features=3, state=3, outputs=2, hidden=(4,), gaussian=True)
    said = Actor(spec)(torch.randn(5, 3))
    assert said.shape == (5, 4)
    assert (said[:, 2:] == 0).all()


def test_the_critic_gives_one_value_a_row_of_its_state() -> None:
    """A central critic's state is longer than an agent's features; and nothing hidden is allowed."""
    spec = EncoderSpec(features=3, state=9, outputs=2, hidden=(), activation="relu")
    assert Critic(spec)(torch.randn(5, 9)).shape == (5,)
    assert Actor(spec)(torch.randn(5, 3)).shape == (5, 2)


def test_a_spec_is_json_and_back() -> None:
    """Exports and RLlib's checkpoints carry it so."""
    assert EncoderSpec(**SPEC.as_json()) == SPEC
