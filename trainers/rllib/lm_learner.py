"""PPO on language models: a minibatch in as many passes as memory asks for, and a penalty for leaving the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from policies.lm.batches import parts_of
from policies.lm.featurize import TOKENS
from policies.lm.layout import PAD, chains
from runtime.errors import RepertoryError
from trainers.rllib.fragment import ModuleID
from trainers.rllib.learner import GRADIENT_NORM, RepertoryLearner
from trainers.rllib.lm_module import CausalLMModule, WritingModule
from trainers.rllib.lm_tokens import TOKEN_ADVANTAGES, token_advantages, token_loss
from trainers.rllib.losses import Coefficients, Loss
from trainers.rllib.minibatches import FairMinibatches, Minibatch

REFERENCE = "reference_scores"
"""Column: what the frozen reference says."""
REFERENCE_KL = "reference_kl"
"""KL divergence from the frozen reference, nat; mean over decisions."""

CRITIC_PACE = 10.0
"""What the critic's step size is of the model's: it starts from nothing, and its error does not reach the model."""


class OutOfMemory(RepertoryError):
    """An update did not fit into memory: which policy's, and the setting to change."""


class LMLearner(RepertoryLearner):
    """``learner_class`` where a policy is a language model; others learn in it as they do in the one it extends."""

    def configure_optimizers_for_module(self, module_id: ModuleID, config: Any = None) -> None:
        """Two optimizers: a fresh critic learns faster than a model that has been to school."""
        module = self._policy(module_id)
        if not isinstance(module, CausalLMModule):
            super().configure_optimizers_for_module(module_id, config)
            return
        for name, part, pace in (("model", module.pi, 1.0), ("critic", module.vf, CRITIC_PACE)):
            params = [p for p in part.parameters() if p.requires_grad]
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=name,
                optimizer=torch.optim.Adam(params, fused=True),
                params=params,
                lr_or_lr_schedule=_times(config.lr, pace),
            )

    def _batches(self, fragments: Sequence[Any]) -> dict[ModuleID, dict[str, Any]]:
        batches = super()._batches(fragments)
        for mid, batch in batches.items():
            module = self._policy(mid)
            if isinstance(module, WritingModule):
                width = max(1, int((batch[Columns.ACTIONS] != PAD).sum(1).max()))
                batch |= {k: batch[k][:, :width] for k in (Columns.ACTIONS, Columns.ACTION_LOGP)}
                batch[TOKEN_ADVANTAGES] = token_advantages(
                    module.token_values(batch), batch, normalize=self.fragment_to_batch.normalize
                )
            elif isinstance(module, CausalLMModule) and module.spec.kl > 0:
                batch[REFERENCE] = module.reference_scores(batch)
        return batches

    def _minibatches(
        self, batches: Mapping[ModuleID, dict[str, Any]], epochs: int, size: int | None, chance: Any
    ) -> FairMinibatches:
        return EpisodeMinibatches(batches, epochs=epochs, size=size, chance=chance)

    def _step(
        self,
        minibatch: Minibatch,
        weights: Mapping[ModuleID, Coefficients],
        figures: Mapping[ModuleID, list[dict[str, torch.Tensor]]] | None,
    ) -> None:
        others = {m: b for m, b in minibatch.rows.items() if not isinstance(self._policy(m), CausalLMModule)}
        if others:
            super()._step(Minibatch(others, minibatch.last_epoch), weights, figures)
        for mid in minibatch.rows.keys() - others.keys():
            try:
                found = self._accumulate(mid, minibatch.rows[mid], weights[mid])
            except torch.OutOfMemoryError as error:
                raise OutOfMemory(_advice(mid, self._policy(mid).spec)) from error
            if figures is not None:
                figures[mid].append(found)

    def _accumulate(self, mid: ModuleID, batch: dict[str, Any], weights: Coefficients) -> dict[str, torch.Tensor]:
        """One gradient step: passes over parts of the minibatch, whose gradients add up to the whole's."""
        module = self._policy(mid)
        whole = _weight(batch)
        sums: dict[str, torch.Tensor] = {}
        last: Loss | None = None
        for at in parts_of(batch[Columns.OBS][TOKENS], module.pi.block, module.spec.chunk):
            part = _taken(batch, at.to(batch[Postprocessing.ADVANTAGES].device))
            share = _weight(part) / whole
            with self._precision():
                out = module._forward_train(part)
                last = self._loss(mid, part, out, weights)
                total, kl = self._with_reference(module, part, out, last.total)
            (total * share).backward()
            for name, value in {**last.figures(), **kl}.items():
                sums[name] = sums.get(name, torch.zeros((), device=value.device)) + value * share
        assert last is not None
        return {**sums, GRADIENT_NORM: self._apply(mid, last)}

    def _loss(self, mid: ModuleID, batch: dict[str, Any], out: Mapping[str, Any], weights: Coefficients) -> Loss:
        module = self._policy(mid)
        if not isinstance(module, WritingModule):
            return super()._loss(mid, batch, out, weights)
        values = module.compute_values(batch, embeddings=out[Columns.EMBEDDINGS]).float()
        return token_loss(batch, out[Columns.ACTION_DIST_INPUTS].float(), values, weights)

    def _with_reference(
        self, module: CausalLMModule, batch: Mapping[str, Any], out: Mapping[str, Any], total: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss with the penalty, and the penalty as a figure."""
        if REFERENCE not in batch:
            return total, {}
        now = torch.log_softmax(out[Columns.ACTION_DIST_INPUTS].float(), -1)
        then = torch.log_softmax(batch[REFERENCE].float(), -1)
        kl = (now.exp() * (now - then)).sum(-1).mean()
        return total + module.spec.kl * kl, {REFERENCE_KL: kl.detach()}


class EpisodeMinibatches(FairMinibatches):
    """Minibatches in which turns of one agent's episode stand together, so that they are read in one go."""

    def _order(self, batch: Mapping[str, Any], count: int) -> np.ndarray:
        if TOKENS not in batch[Columns.OBS] or self.chance is None:
            return super()._order(batch, count)
        groups = [g.numpy() for g in chains(batch[Columns.OBS][TOKENS])]
        return np.concatenate([groups[i] for i in self.chance.permutation(len(groups))])


def _weight(batch: Mapping[str, Any]) -> int:
    """What a mean is taken over: decisions, or the tokens of written calls."""
    actions = batch[Columns.ACTIONS]
    return int((actions != PAD).sum()) if TOKEN_ADVANTAGES in batch else len(actions)


def _times(schedule: Any, pace: float) -> Any:
    """A step size, or a schedule of it, at another pace."""
    return [[at, pace * lr] for at, lr in schedule] if isinstance(schedule, list) else pace * schedule


def _taken(batch: Mapping[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    return {k: {n: c[rows] for n, c in v.items()} if isinstance(v, Mapping) else v[rows] for k, v in batch.items()}


def _advice(mid: ModuleID, spec: Any) -> str:
    more = "" if spec.checkpointing else ", or set checkpointing: true"
    return f"policies.{mid}: out of memory in an update; lower chunk from {spec.chunk} to {spec.chunk // 2}{more}"
