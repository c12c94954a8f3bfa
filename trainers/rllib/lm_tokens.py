"""PPO token by token, for calls that a model writes: γ = λ = 1 inside a call, γ and λ of the file between calls."""

from collections.abc import Mapping
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from policies.lm.layout import PAD
from trainers.rllib.connector import SMALLEST_STD
from trainers.rllib.losses import Coefficients, Loss

TOKEN_ADVANTAGES = "token_advantages"
"""Column: (B, T)."""


def token_advantages(values_bt: torch.Tensor, batch: Mapping[str, Any], *, normalize: bool) -> torch.Tensor:
    """(B, T) what each token was better than what the critic saw coming before it.

    Inside a call nothing is paid and nothing discounted, so a token's generalized advantage is the λ-return of the call
    minus the value before the token (Schulman et al. 2016, eq. 16, with γ = λ = 1).

    Args:
        values_bt: the critic's, before each token.
        batch: the calls, and the λ-return of each as ``value_targets``.
        normalize: shift and scale to mean 0 and standard deviation 1 over all tokens.
    """
    real = batch[Columns.ACTIONS] != PAD
    found = batch[Postprocessing.VALUE_TARGETS][:, None] - values_bt[:, : real.shape[1]]
    if normalize:
        told = found[real]
        found = (found - told.mean()) / told.std(correction=0).clamp(min=SMALLEST_STD)
    return found.masked_fill(~real, 0.0)


def token_loss(
    batch: Mapping[str, Any], inputs_bt2: torch.Tensor, values_bt: torch.Tensor, weights: Coefficients
) -> Loss:
    """The PPO loss of a minibatch, each token an action.

    Args:
        batch: calls, their tokens' log p when they were written, token advantages and value targets.
        inputs_bt2: log p and entropy of each token now, nat.
        values_bt: what the critic says now before each token.
        weights: of the parts.
    """
    width = inputs_bt2.shape[1]
    real = batch[Columns.ACTIONS][:, :width] != PAD
    log_ratio = (inputs_bt2[..., 0] - batch[Columns.ACTION_LOGP][:, :width])[real]
    ratio, advantages = log_ratio.exp(), batch[TOKEN_ADVANTAGES][:, :width][real]
    surrogate = torch.min(advantages * ratio, advantages * ratio.clamp(1 - weights.clip, 1 + weights.clip))
    targets = batch[Postprocessing.VALUE_TARGETS][:, None].expand(-1, width)[real]
    squared_error = (values_bt[real] - targets).square()
    entropy = inputs_bt2[..., 1][real]
    total = (-surrogate + weights.vf * squared_error.clamp(0, weights.vf_clip) - weights.entropy * entropy).mean()
    return Loss(total, surrogate.detach(), squared_error.detach(), log_ratio.detach(), entropy.detach(), None, weights)
