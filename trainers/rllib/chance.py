"""From what a policy says to what an agent does: chance is drawn from (seed, scenario, agent, turn), nothing else.

The same decision is therefore taken whatever the batch, the number of environments or the process.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.distribution.torch.torch_distribution import (
    TorchCategorical,
    TorchDiagGaussian,
    TorchMultiCategorical,
)

from policies.choice import choose, log_probability
from runtime.errors import RepertoryError
from runtime.seams import digest, uniform

Key = tuple[Any, ...]
"""(seed, scenario, agent, turn)."""


class NonFinite(RepertoryError):
    """A policy, loss or gradient is NaN or infinite: which module's, and where."""

    def __init__(self, module: str, what: str) -> None:
        super().__init__(module, what)
        self.module, self.what = module, what

    def __str__(self) -> str:
        return f"module {self.module}: {self.what} is not finite; lower the learning rate or look at the rewards"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A batch of actions."""

    actions: np.ndarray
    """(B,) int64, (B, D) int64 or (B, D) float32."""
    logp: np.ndarray
    """(B,) float32, natural logarithm of their probability or density."""


Draw = Callable[[torch.Tensor, Sequence[Key] | None], Drawn]
"""Actions for the distribution inputs; greedy ones where there are no keys."""


def draw_discrete(inputs: torch.Tensor, keys: Sequence[Key] | None) -> Drawn:
    """One of K candidates."""
    logits = inputs.float().cpu().numpy()
    if keys is None:
        actions = logits.argmax(1)
    else:
        actions = choose(logits, np.array([uniform(*key) for key in keys]))
    return Drawn(actions, log_probability(logits, actions))


def draw_multi_discrete(inputs: torch.Tensor, keys: Sequence[Key] | None, sizes: Sequence[int]) -> Drawn:
    """One of several candidates in each dimension."""
    parts = np.split(inputs.float().cpu().numpy(), np.cumsum(sizes)[:-1], axis=1)
    if keys is None:
        columns = [p.argmax(1) for p in parts]
    else:
        columns = [choose(p, np.array([uniform(*key, d) for key in keys])) for d, p in enumerate(parts)]
    logp = np.sum([log_probability(p, c) for p, c in zip(parts, columns, strict=True)], axis=0)
    return Drawn(np.stack(columns, 1), logp.astype(np.float32))


def draw_box(inputs: torch.Tensor, keys: Sequence[Key] | None, shape: tuple[int, ...]) -> Drawn:
    """Numbers from a diagonal Gaussian whose inputs are means and logarithms of standard deviations."""
    mean, log_std = inputs.float().cpu().chunk(2, dim=-1)
    actions = mean
    if keys is not None:
        noise = np.stack([np.random.default_rng(digest(*k)).standard_normal(mean.shape[1], np.float32) for k in keys])
        actions = mean + log_std.exp() * torch.from_numpy(noise)
    logp = TorchDiagGaussian.from_logits(torch.cat([mean, log_std], -1)).logp(actions)
    return Drawn(np.asarray(actions).reshape(-1, *shape), np.asarray(logp))


def draw_for(space: gym.Space[Any], distribution: type) -> Draw:
    """How to draw from that distribution for that space. Raises TypeError for one that is not supported."""
    if isinstance(space, gym.spaces.Discrete) and distribution is TorchCategorical:
        return draw_discrete
    if isinstance(space, gym.spaces.MultiDiscrete) and issubclass(distribution, TorchMultiCategorical):
        sizes = [int(n) for n in space.nvec]
        return lambda inputs, keys: draw_multi_discrete(inputs, keys, sizes)
    if isinstance(space, gym.spaces.Box) and distribution is TorchDiagGaussian and len(space.shape) == 1:
        shape = space.shape
        return lambda inputs, keys: draw_box(inputs, keys, shape)
    raise TypeError(
        f"actions of {space} under {distribution.__name__} are not supported: use Discrete with TorchCategorical, "
        "MultiDiscrete with TorchMultiCategorical, or a one-dimensional Box with TorchDiagGaussian"
    )
