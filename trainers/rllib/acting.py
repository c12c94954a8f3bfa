"""One policy at work: raw observations to arrays, one forward, actions drawn and made ready for the environment."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

from trainers.rllib.chance import Draw, Drawn, Key, NonFinite, draw_for
from trainers.rllib.fragment import Arrays, ModuleID
from trainers.rllib.slots import MASK, Featurizer, Flatten


class IllegalAction(ValueError):
    """A policy chose an action that its mask forbids."""


class Actor:
    """A module, the featurizer before it and the action space behind it."""

    def __init__(
        self,
        mid: ModuleID,
        module: Any,
        spaces: tuple[gym.Space[Any], gym.Space[Any]],
        featurize: Featurizer | None,
        config: Any,
    ) -> None:
        self.mid, self.module = mid, module
        self.space = spaces[1]
        self.featurize: Featurizer = featurize or Flatten(spaces[0])
        self._squashed, self._clipped = config.normalize_actions, config.clip_actions
        self._keep_inputs = config.get_config_for_module(mid).use_kl_loss
        self._draw: Draw | None = None
        self._logits: torch.Tensor | None = None
        """``(B, K)`` of the last batch's candidates; None where actions are not candidates."""
        self._device = next((p.device for p in module.parameters()), torch.device("cpu"))

    @torch.no_grad()
    def act(self, observations: Arrays, keys: Sequence[Key] | None) -> tuple[dict[str, Any], Sequence[Any]]:
        """Decide for a batch.

        Args:
            observations: featurized, a row each.
            keys: what each decision's chance is drawn from; None for the best action without chance.

        Returns:
            The columns to store, and the actions as the environment takes them.
        """
        batch = {Columns.OBS: {k: torch.from_numpy(v).to(self._device) for k, v in observations.items()}}
        # RLlib's public methods switch all submodules to eval and back on every call; the runner does so once.
        if hasattr(self.module, "generate"):
            out = self.module.generate(batch, keys)
        else:
            out = (self.module._forward_exploration if keys is not None else self.module._forward_inference)(batch)
        drawn = self._given(out) or self._drawn(out[Columns.ACTION_DIST_INPUTS], keys)
        choosing = isinstance(self.space, gym.spaces.Discrete) and Columns.ACTIONS not in out
        self._logits = out[Columns.ACTION_DIST_INPUTS] if choosing else None
        if MASK in observations and drawn.actions.ndim == 1:
            self._check_legal(observations[MASK], drawn.actions)
        columns = {Columns.OBS: observations, Columns.ACTIONS: drawn.actions, Columns.ACTION_LOGP: drawn.logp}
        if self._keep_inputs and Columns.ACTION_DIST_INPUTS in out:
            columns[Columns.ACTION_DIST_INPUTS] = out[Columns.ACTION_DIST_INPUTS].float().cpu().numpy()
        return columns, self._outward(drawn.actions)

    def probabilities(self, row: int) -> tuple[float, ...] | None:
        """``(K,)`` of each candidate in that row of the last batch; None where actions are not candidates."""
        if self._logits is None:
            return None
        return tuple(torch.softmax(self._logits[row].double(), -1).cpu().numpy().round(6).tolist())

    def _given(self, out: dict[str, Any]) -> Drawn | None:
        """The actions that the module has drawn itself, if it has."""
        if Columns.ACTIONS not in out:
            return None
        return Drawn(out[Columns.ACTIONS].cpu().numpy(), out[Columns.ACTION_LOGP].float().cpu().numpy())

    def _drawn(self, inputs: torch.Tensor, keys: Sequence[Key] | None) -> Drawn:
        if self._draw is None:
            self._draw = draw_for(self.space, self.module.get_exploration_action_dist_cls())
        drawn = self._draw(inputs, keys)
        if not np.isfinite(drawn.logp).all():
            raise NonFinite(self.mid, "the probability of an action")
        return drawn

    def _check_legal(self, mask_bk: np.ndarray, actions_b: np.ndarray) -> None:
        legal = mask_bk[np.arange(len(actions_b)), actions_b]
        if not legal.all():
            raise IllegalAction(f"module {self.mid} chose {actions_b[~legal][0]}, which its mask forbids")

    def _outward(self, actions: np.ndarray) -> Sequence[Any]:
        """The actions in the environment's own terms."""
        if hasattr(self.module, "spoken"):
            return self.module.spoken(actions)
        if isinstance(self.space, gym.spaces.Discrete):
            return (actions + self.space.start).tolist() if self.space.start else actions.tolist()
        if isinstance(self.space, gym.spaces.Box) and self._squashed:
            return [unsquash_action(a, self.space) for a in actions]
        if isinstance(self.space, gym.spaces.Box) and self._clipped:
            return [clip_action(a, self.space) for a in actions]
        return list(actions)
