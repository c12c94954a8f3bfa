"""PPO on fair minibatches: RLlib's loss, figures once an update, a state from which training resumes bit by bit."""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import ALL_MODULES, COMPONENT_RL_MODULE
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.metrics import (
    MODULE_TRAIN_BATCH_SIZE_MEAN,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_ENV_STEPS_TRAINED,
    NUM_ENV_STEPS_TRAINED_LIFETIME,
    NUM_MODULE_STEPS_TRAINED,
    NUM_MODULE_STEPS_TRAINED_LIFETIME,
    WEIGHTS_SEQ_NO,
)

from runtime.errors import RepertoryError
from runtime.seams import digest
from trainers.rllib.chance import NonFinite
from trainers.rllib.connector import FragmentToBatch
from trainers.rllib.fragment import Fragment, ModuleID
from trainers.rllib.losses import Coefficients, Loss, ppo_loss
from trainers.rllib.minibatches import FairMinibatches, Minibatch
from trainers.rllib.randomness import load_randomness, randomness
from trainers.rllib.refusals import Unsupported
from trainers.rllib.slots import policy_hash

STANDARDIZER = "standardizer"
RANDOMNESS = "randomness"
SCHEDULES = "schedules"
AUTOCAST = "autocast"
"""Key of ``learner_config_dict``: whether to compute forward passes in bfloat16."""
UPDATE_SECONDS = "update_seconds"
"""Under all modules: what this update took, s; RLlib's own timers are smoothed over iterations."""
GRADIENT_NORM = "gradient_norm"
"""L2 norm over all of a module's parameters, before clipping; mean over the last epoch's minibatches."""


class NothingToLearn(RepertoryError):
    """A batch without a single row: no update would take place."""


class RepertoryLearner(PPOTorchLearner):
    """``learner_class`` to go with ``BatchedRunner`` and ``FragmentToBatch``.

    Its metrics under each module are means over the last epoch's minibatches of one update, RLlib's names where there
    are any: ``policy_loss``, ``vf_loss``, ``entropy`` (nat), ``clip_fraction``, ``approx_kl`` (nat, Schulman's k3),
    ``gradient_norm``.
    """

    def build(self) -> None:
        if self.config.num_learners > 1:
            raise Unsupported("num_learners: at most one, since statistics and minibatches are not shared")
        if self.config.add_default_connectors_to_learner_pipeline:
            raise Unsupported("add_default_connectors_to_learner_pipeline: set it to False")
        if self.config.grad_clip is not None and self.config.grad_clip_by != "global_norm":
            raise Unsupported(f"grad_clip_by={self.config.grad_clip_by!r}: only 'global_norm'")
        super().build()
        self._chance = np.random.default_rng(digest(self.config.seed, "minibatches"))
        self._timestep = 0

    @property
    def fragment_to_batch(self) -> FragmentToBatch:
        """The connector that makes this learner's batches."""
        return next(c for c in self._learner_connector.connectors if isinstance(c, FragmentToBatch))

    def policy_hashes(self) -> dict[ModuleID, str]:
        """What runners must be sampling with."""
        return {mid: policy_hash(m) for mid, m in self.module.items()}

    def _policy(self, mid: ModuleID) -> Any:
        return self._module[mid].unwrapped()

    # -- state

    def get_state(self, components: Any = None, *, not_components: Any = None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        standardizer = self.fragment_to_batch.standardizer
        if standardizer is not None and self._check_component(STANDARDIZER, components, not_components):
            state[STANDARDIZER] = standardizer.state()
        if self._check_component(RANDOMNESS, components, not_components):
            state[RANDOMNESS] = {**randomness(), "minibatches": self._chance.bit_generator.state}
        if self._check_component(SCHEDULES, components, not_components):
            kl = {mid: float(self.curr_kl_coeffs_per_module[mid]) for mid in self.module.keys()}  # noqa: SIM118
            state[SCHEDULES] = {"timestep": self._timestep, "kl_coeff": kl}
        return state

    def set_state(self, state: Any) -> None:
        if COMPONENT_RL_MODULE in state and state.get(WEIGHTS_SEQ_NO, 0) < self._weights_seq_no:
            self._weights_seq_no = -1  # gone back to an earlier checkpoint: RLlib would keep the newer weights
        super().set_state(state)
        standardizer = self.fragment_to_batch.standardizer
        if STANDARDIZER in state and standardizer is not None:
            standardizer.load(state[STANDARDIZER])
        if RANDOMNESS in state:
            load_randomness(state[RANDOMNESS])
            self._chance.bit_generator.state = state[RANDOMNESS]["minibatches"]
        if SCHEDULES in state:
            self._follow(state[SCHEDULES])

    def _follow(self, schedules: Mapping[str, Any]) -> None:
        """Stand where the schedules stood. RLlib saves neither them nor the coefficients of the KL penalty."""
        self._timestep = schedules["timestep"]
        for mid, kl in schedules["kl_coeff"].items():
            self.entropy_coeff_schedulers_per_module[mid].update(timestep=self._timestep)
            coefficient: Any = self.curr_kl_coeffs_per_module[mid]
            coefficient.data.fill_(kl)

    def configure_optimizers_for_module(self, module_id: ModuleID, config: Any = None) -> None:
        params = [p for p in self._policy(module_id).parameters() if p.requires_grad]
        if params:
            adam = torch.optim.Adam(params, fused=True)
            self.register_optimizer(module_id=module_id, optimizer=adam, params=params, lr_or_lr_schedule=config.lr)

    # -- an update

    def update(
        self,
        *,
        training_data: Any = None,
        episodes: Sequence[Fragment] | None = None,
        timesteps: Mapping[str, Any] | None = None,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Go over the fragments ``num_epochs`` times. Raises NothingToLearn and NonFinite."""
        began = time.perf_counter()
        fragments = _fragments(training_data, episodes)
        self.before_gradient_based_update(timesteps=dict(timesteps or {}))
        self._weights_seq_no += 1
        batches = self._batches(fragments)
        chance = self._chance if shuffle_batch_per_epoch else None
        weights = {mid: self._coefficients(mid) for mid in batches}
        figures: dict[ModuleID, list[dict[str, torch.Tensor]]] = {mid: [] for mid in batches}
        for mid in batches:
            self._policy(mid).train()
        for minibatch in self._minibatches(batches, num_epochs, minibatch_size, chance):
            self._step(minibatch, weights, figures if minibatch.last_epoch else None)
        self._log_update(batches, figures, num_epochs, sum(map(len, fragments)))
        self.after_gradient_based_update(timesteps=dict(timesteps or {}))
        self._timestep = (timesteps or {}).get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        self.metrics.log_value((ALL_MODULES, UPDATE_SECONDS), time.perf_counter() - began, window=1)
        return self.metrics.reduce()

    def compute_loss_for_module(
        self, *, module_id: ModuleID, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        return self._loss(module_id, batch, fwd_out, self._coefficients(module_id)).total

    def _batches(self, fragments: Sequence[Fragment]) -> dict[ModuleID, dict[str, Any]]:
        """The train batch of every module that learns and has decided something."""
        learning = [
            replace(f, columns={mid: c for mid, c in f.columns.items() if self.should_module_be_updated(mid)})
            for f in fragments
        ]
        pipeline: Any = self._learner_connector
        batches = pipeline(rl_module=self.module, batch={}, episodes=learning, shared_data={}, metrics=self.metrics)
        if not batches:
            raise NothingToLearn("no policy that learns has a decision in this batch: every trajectory was dropped")
        return batches

    def _minibatches(
        self, batches: Mapping[ModuleID, dict[str, Any]], epochs: int, size: int | None, chance: Any
    ) -> FairMinibatches:
        """How the batches are gone through."""
        return FairMinibatches(batches, epochs=epochs, size=size, chance=chance)

    def _coefficients(self, mid: ModuleID) -> Coefficients:
        config: Any = self.config.get_config_for_module(mid)
        entropy = self.entropy_coeff_schedulers_per_module[mid].get_current_value()
        return Coefficients(
            clip=config.clip_param,
            vf=config.vf_loss_coeff if config.use_critic else 0.0,
            vf_clip=config.vf_clip_param,
            entropy=entropy,
            kl=self.curr_kl_coeffs_per_module[mid] if config.use_kl_loss else None,
        )

    def _loss(self, mid: ModuleID, batch: dict[str, Any], out: Mapping[str, Any], weights: Coefficients) -> Loss:
        module = self._policy(mid)
        values = module.compute_values(batch, embeddings=out.get(Columns.EMBEDDINGS)).float()
        return ppo_loss(module, batch, out[Columns.ACTION_DIST_INPUTS].float(), values, weights)

    def _step(
        self,
        minibatch: Minibatch,
        weights: Mapping[ModuleID, Coefficients],
        figures: Mapping[ModuleID, list[dict[str, torch.Tensor]]] | None,
    ) -> None:
        """One gradient step of every module in the minibatch."""
        losses: dict[ModuleID, Loss] = {}
        for mid, batch in minibatch.rows.items():
            with self._precision():
                out = self._policy(mid)._forward_train(batch)  # the public one sets train() every time
                losses[mid] = self._loss(mid, batch, out, weights[mid])
        torch.stack([loss.total for loss in losses.values()]).sum().backward()
        for mid, loss in losses.items():
            norm = self._apply(mid, loss)
            if figures is not None:
                figures[mid].append({**loss.figures(), GRADIENT_NORM: norm})

    def _precision(self) -> AbstractContextManager[Any]:
        if not self.config.learner_config_dict.get(AUTOCAST, False):
            return nullcontext()
        return torch.autocast(self._device.type, torch.bfloat16)

    def _apply(self, mid: ModuleID, loss: Loss) -> torch.Tensor:
        """Clip, check and take the gradients of one module; their norm before clipping."""
        config = self.config
        norms: list[torch.Tensor] = []
        for _, optimizer in self.get_optimizers_for_module(mid):
            params: list[Any] = list(self._optimizer_parameters[optimizer])
            gradients = [p.grad for p in params if p.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
            norms.append(norm)
            if not math.isfinite(norm.item()):
                what = "a gradient" if math.isfinite(loss.total.item()) else "the loss"
                raise NonFinite(mid, what)
            if config.grad_clip is not None:
                torch.nn.utils.clip_grads_with_norm_(params, config.grad_clip, norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return torch.stack(norms).square().sum().sqrt() if norms else torch.zeros(())

    def _log_update(
        self,
        batches: Mapping[ModuleID, Mapping[str, Any]],
        figures: Mapping[ModuleID, list[dict[str, torch.Tensor]]],
        epochs: int,
        env_steps: int,
    ) -> None:
        """Log what RLlib logs for every minibatch once for all of them."""
        log = self.metrics.log_value
        for mid, found in figures.items():
            means = {name: torch.stack([f[name] for f in found]).mean().item() for name in found[0]}
            rows = len(batches[mid][Postprocessing.ADVANTAGES])
            self.metrics.log_dict({**means, WEIGHTS_SEQ_NO: self._weights_seq_no}, key=mid, window=1)
            log((mid, MODULE_TRAIN_BATCH_SIZE_MEAN), rows / len(found), reduce="mean")
            for key in (mid, ALL_MODULES):
                log((key, NUM_MODULE_STEPS_TRAINED), rows * epochs, reduce="sum")
                log(
                    (key, NUM_MODULE_STEPS_TRAINED_LIFETIME), rows * epochs, reduce="lifetime_sum", with_throughput=True
                )
        log((ALL_MODULES, NUM_ENV_STEPS_TRAINED), env_steps, reduce="sum", with_throughput=True)
        log((ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME), env_steps, reduce="lifetime_sum", with_throughput=True)


def _fragments(data: Any, episodes: Sequence[Fragment] | None) -> Sequence[Fragment]:
    """What there is to learn from: RLlib hands over fragments where it would have episodes."""
    if data is None:
        return episodes or ()
    data.solve_refs()
    return data.episodes or ()
