"""The PPO loss (Schulman et al. 2017, eq. 9), the same number as RLlib's, and the figures that say how it goes."""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from ray.rllib.algorithms.ppo.ppo import LEARNER_RESULTS_KL_KEY, LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.learner.learner import ENTROPY_KEY, POLICY_LOSS_KEY, VF_LOSS_KEY, Learner
from ray.rllib.evaluation.postprocessing import Postprocessing

CLIP_FRACTION = "clip_fraction"
"""Share of decisions whose probability ratio is clipped; dimensionless."""
APPROX_KL = "approx_kl"
"""KL divergence of the policy from the one that decided, nat: the mean of (r − 1) − ln r (Schulman 2020, k3)."""


class Distribution(Protocol):
    """What the loss asks of a distribution of actions."""

    def logp(self, value: torch.Tensor) -> torch.Tensor:
        """(B,) natural logarithm of the probability or density."""
        ...

    def entropy(self) -> torch.Tensor:
        """(B,) nat."""
        ...


class Categorical:
    """One of K candidates; does only what the loss needs, without ``torch.distributions``' checks of every input."""

    def __init__(self, logits_bk: torch.Tensor) -> None:
        self.log_bk = torch.log_softmax(logits_bk, -1)

    def logp(self, value: torch.Tensor) -> torch.Tensor:
        """(B,) logarithm of the probability of each action."""
        return self.log_bk.gather(-1, value.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> torch.Tensor:
        """(B,) nat; what may not be chosen adds nothing."""
        return -(self.log_bk.exp() * self.log_bk.clamp_min(torch.finfo(self.log_bk.dtype).min)).sum(-1)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The weights of the loss's parts."""

    clip: float
    """Farthest that the probability ratio counts from 1."""
    vf: float
    vf_clip: float
    """Most that one row's squared error of the critic counts."""
    entropy: Any
    """Per nat."""
    kl: Any
    """Per nat; None leaves the penalty out."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one minibatch, and its parts."""

    total: torch.Tensor
    surrogate: torch.Tensor
    squared_error: torch.Tensor
    log_ratio: torch.Tensor
    entropy: torch.Tensor
    kl: torch.Tensor | None
    weights: Coefficients

    @torch.no_grad()
    def figures(self) -> dict[str, torch.Tensor]:
        """Means over the minibatch."""
        ratio = self.log_ratio.exp()
        found = {
            Learner.TOTAL_LOSS_KEY: self.total.detach(),
            POLICY_LOSS_KEY: -self.surrogate.mean(),
            VF_LOSS_KEY: self.squared_error.clamp(0, self.weights.vf_clip).mean(),
            LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY: self.squared_error.mean(),
            ENTROPY_KEY: self.entropy.mean(),
            CLIP_FRACTION: ((ratio - 1).abs() > self.weights.clip).float().mean(),
            APPROX_KL: ((ratio - 1) - self.log_ratio).mean(),
        }
        if self.kl is not None:
            found[LEARNER_RESULTS_KL_KEY] = self.kl.detach()
        return found


def ppo_loss(
    module: Any, batch: dict[str, Any], inputs: torch.Tensor, values: torch.Tensor, weights: Coefficients
) -> Loss:
    """The loss of a minibatch.

    Args:
        module: whose distribution of actions it is.
        batch: observations, actions, their log p when they were taken, advantages and value targets.
        inputs: what the policy says now.
        values: (B,) what the critic says now.
        weights: of the parts.
    """
    now = _distribution(module.get_train_action_dist_cls(), inputs)
    log_ratio = now.logp(batch[Columns.ACTIONS]) - batch[Columns.ACTION_LOGP]
    ratio = log_ratio.exp()
    advantages = batch[Postprocessing.ADVANTAGES]
    clipped = ratio.clamp(1 - weights.clip, 1 + weights.clip)
    surrogate = torch.min(advantages * ratio, advantages * clipped)
    squared_error = (values - batch[Postprocessing.VALUE_TARGETS]).square()
    entropy = now.entropy()
    total = (-surrogate + weights.vf * squared_error.clamp(0, weights.vf_clip) - weights.entropy * entropy).mean()
    kl = None
    if weights.kl is not None:
        before = module.get_exploration_action_dist_cls().from_logits(batch[Columns.ACTION_DIST_INPUTS])
        kl = before.kl(module.get_train_action_dist_cls().from_logits(inputs)).mean()
        total = total + weights.kl * kl
    return Loss(total, surrogate.detach(), squared_error.detach(), log_ratio.detach(), entropy.detach(), kl, weights)


def _distribution(kind: Any, inputs: torch.Tensor) -> Distribution:
    return Categorical(inputs) if kind is TorchCategorical else kind.from_logits(inputs)
