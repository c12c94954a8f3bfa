"""The only learner connector: fragments to train batches, with rewards standardized and advantages estimated."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from ray.rllib.algorithms.ppo.ppo import LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.rllib.utils.postprocessing.value_predictions import compute_value_targets

from runtime.types import AgentId
from trainers.rllib.fragment import AGENT, Fragment, ModuleID, concatenated

REWARDS = "rewards"
"""Under each module's metrics: per agent ``raw_mean``, ``raw_std``, ``standardized_mean``, ``standardized_std``."""
EXPLAINED_VARIANCE = LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY
"""1 − Var(target − value) / Var(target), of the critic as it was before this update; dimensionless."""
SMALLEST_STD = 1e-4
"""Advantages are divided by no less, as RLlib does; dimensionless."""
ROUNDING = 1e-6
"""Of the largest value: what varies by less, in 32 bits, does not vary."""
TRAINED = (Columns.OBS, Columns.ACTIONS, Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS)
"""Columns that go into the train batch as they are."""


class Standardizer(Protocol):
    """Online statistics of rewards, per key."""

    def transform(self, key: str, values: np.ndarray, /) -> np.ndarray:
        """The values in standard units, by what is known so far."""
        ...

    def update(self, key: str, values: np.ndarray, /) -> None:
        """Take the values into account from now on."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is known."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Know what another one knew."""
        ...


class FragmentToBatch(ConnectorV2):
    """Fragments in, ``{module: tensors}`` out: the critic sees every row once, bootstrap rows are then dropped.

    Rewards are standardized by what was known before this batch, which afterwards becomes known. γ and λ count an
    agent's own turns.
    """

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        gamma: float,
        lambda_: float,
        standardizer: Standardizer | None = None,
        normalize_advantages: bool = True,
    ) -> None:
        super().__init__(input_observation_space, input_action_space)
        self.gamma, self.lambda_ = gamma, lambda_
        self.standardizer, self.normalize = standardizer, normalize_advantages

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: Any,
        episodes: Sequence[Fragment],
        metrics: MetricsLogger | None = None,
        **kwargs: Any,
    ) -> dict[ModuleID, dict[str, Any]]:
        columns = gathered(episodes)
        agents = episodes[0].agents if episodes else ()
        raw = {mid: c[Columns.REWARDS] for mid, c in columns.items()}
        paid = {mid: self._standardized(c, agents) for mid, c in columns.items()}
        figures = {mid: _reward_figures(c, paid[mid], agents) for mid, c in columns.items()}
        out: dict[ModuleID, dict[str, Any]] = {}
        for mid, c in columns.items():
            out[mid], figures[mid][EXPLAINED_VARIANCE] = self._module_batch(rl_module[mid], c, paid[mid])
        self._learn(columns, raw, agents)
        if metrics is not None:
            metrics.log_dict(figures, window=1)
        return out

    def _standardized(self, columns: Mapping[str, Any], agents: Sequence[AgentId]) -> np.ndarray:
        """The rewards of the real rows, each by its agent's statistics."""
        rewards = columns[Columns.REWARDS]
        if self.standardizer is None:
            return rewards
        paid = np.zeros_like(rewards)
        for agent, rows in _rows_of_agents(columns, agents):
            paid[rows] = self.standardizer.transform(agent, rewards[rows])
        return paid

    def _learn(
        self,
        columns: Mapping[ModuleID, Mapping[str, Any]],
        raw: Mapping[ModuleID, np.ndarray],
        agents: Sequence[AgentId],
    ) -> None:
        if self.standardizer is None:
            return
        for mid, c in columns.items():
            for agent, rows in _rows_of_agents(c, agents):
                self.standardizer.update(agent, raw[mid][rows])

    @torch.no_grad()
    def _module_batch(
        self, module: Any, columns: Mapping[str, Any], rewards: np.ndarray
    ) -> tuple[dict[str, Any], float]:
        """A module's train batch, and how well its critic had foreseen the targets."""
        device = next(module.parameters()).device
        tensors = {name: _tensors(columns[name], device) for name in TRAINED if name in columns}
        values = module.compute_values({Columns.OBS: tensors[Columns.OBS]}).float().cpu().numpy()
        ended, cut = (columns[k].astype(np.float32) for k in (Columns.TERMINATEDS, Columns.TRUNCATEDS))
        targets = compute_value_targets(values, rewards, ended, cut, self.gamma, self.lambda_)
        real = columns[Columns.LOSS_MASK]
        if not real.all():
            keep = torch.from_numpy(np.flatnonzero(real)).to(device)
            tensors = {name: _picked(t, keep) for name, t in tensors.items()}
            values, targets = values[real], targets[real]
        advantages = targets - values
        if self.normalize:
            advantages = (advantages - advantages.mean()) / max(SMALLEST_STD, float(advantages.std()))
        tensors[Postprocessing.ADVANTAGES] = torch.from_numpy(advantages).to(device)
        tensors[Postprocessing.VALUE_TARGETS] = torch.from_numpy(targets).to(device)
        return tensors, explained_variance(targets, values)


def gathered(fragments: Sequence[Fragment]) -> dict[ModuleID, dict[str, Any]]:
    """The columns of all fragments, module by module."""
    parts: dict[ModuleID, list[Mapping[str, Any]]] = defaultdict(list)
    for fragment in fragments:
        for mid, columns in fragment.columns.items():
            parts[mid].append(columns)
    return {mid: concatenated(p) for mid, p in sorted(parts.items())}


def explained_variance(targets: np.ndarray, values: np.ndarray) -> float:
    """How much of the targets' variance the values explain; 0 where the targets do not vary but for rounding."""
    spread, rounding = float(targets.var()), ROUNDING * float(np.abs(targets).max())
    return 0.0 if spread <= rounding**2 else 1.0 - float((targets - values).var()) / spread


def _rows_of_agents(columns: Mapping[str, Any], agents: Sequence[AgentId]) -> list[tuple[AgentId, np.ndarray]]:
    """The real rows of each agent that has any."""
    real, whose = columns[Columns.LOSS_MASK], columns[AGENT]
    rows = ((agent, np.flatnonzero(real & (whose == i))) for i, agent in enumerate(agents))
    return [(agent, at) for agent, at in rows if len(at)]


def _reward_figures(columns: Mapping[str, Any], paid: np.ndarray, agents: Sequence[AgentId]) -> dict[str, Any]:
    raw = columns[Columns.REWARDS]
    figures = {
        agent: {
            "raw_mean": float(raw[rows].mean()),
            "raw_std": float(raw[rows].std()),
            "standardized_mean": float(paid[rows].mean()),
            "standardized_std": float(paid[rows].std()),
        }
        for agent, rows in _rows_of_agents(columns, agents)
    }
    return {REWARDS: figures}


def _tensors(column: Any, device: torch.device) -> Any:
    if isinstance(column, Mapping):
        return {k: _tensor(v, device) for k, v in column.items()}
    return _tensor(column, device)


def _tensor(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """The array as a tensor; copied where it lies in Ray's object store, which nobody may write to."""
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def _picked(column: Any, rows: torch.Tensor) -> Any:
    return {k: v[rows] for k, v in column.items()} if isinstance(column, Mapping) else column[rows]
