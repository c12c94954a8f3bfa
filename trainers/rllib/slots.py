"""What a runner is told, and what it keeps for each environment while an episode is open."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import gymnasium as gym
import numpy as np

from runtime.types import AgentId
from trainers.rllib.adapter import Adapter
from trainers.rllib.fragment import Arrays, ModuleID, Trajectory

RUNNER = "runner"
"""Key of the runner's settings in ``config.env_config``."""
FEATURES = "features"
MASK = "action_mask"
STATE = "state"
"""Everybody's latest features, side by side: what a central critic sees."""

Featurizer = Callable[[Sequence[Any]], Arrays]
"""Raw observations of one module's agents to arrays with a row each: ``features`` (B, D), ``action_mask`` (B, K)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerSettings:
    """What a runner needs beyond RLlib's own settings; it travels in ``config.env_config["runner"]``."""

    featurize: Mapping[ModuleID, Featurizer] = field(default_factory=dict[ModuleID, Featurizer])
    """A module that is not listed gets its observations flattened."""
    central: frozenset[ModuleID] = frozenset()
    """Modules whose critic sees the whole team: their observations get ``state``."""
    seed: int = 0
    """With the number of the episode, what environments are reset with."""


class Flatten:
    """The featurizer of plain spaces: what lies under ``observation(s)``, or all of it, as one row of float32."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.part, self.masked, self.space = None, False, space
        if isinstance(space, gym.spaces.Dict):
            self.part = next((k for k in ("observation", "observations") if k in space.spaces), None)
            self.masked = MASK in space.spaces
            rest = {k: v for k, v in space.spaces.items() if k != MASK}
            self.space = space.spaces[self.part] if self.part else gym.spaces.Dict(rest)
        self.plain = isinstance(self.space, gym.spaces.Box)

    def __call__(self, observations: Sequence[Any]) -> Arrays:
        arrays: Arrays = {FEATURES: self._features([self._inner(o) for o in observations])}
        if self.masked:
            arrays[MASK] = np.array([o[MASK] for o in observations]) > 0
        return arrays

    def _inner(self, observation: Any) -> Any:
        if self.part:
            return observation[self.part]
        return {k: v for k, v in observation.items() if k != MASK} if self.masked else observation

    def _features(self, inner: Sequence[Any]) -> np.ndarray:
        if self.plain:
            return np.array(inner, np.float32).reshape(len(inner), -1)
        return np.array([gym.spaces.flatten(self.space, o) for o in inner], np.float32)


@dataclass(slots=True)
class Slot:
    """An open episode."""

    env: Adapter
    observations: dict[AgentId, Any]
    infos: dict[AgentId, dict[str, Any]]
    state: np.ndarray | None
    """(A * D,) everybody's latest features, zeros where not yet seen; None without a central critic."""
    actions: dict[AgentId, Any] = field(default_factory=dict)
    rows: dict[AgentId, list[int]] = field(default_factory=dict)
    """Rows of each open trajectory in its module's part of the fragment."""
    closed: list[tuple[ModuleID, Trajectory]] = field(default_factory=list)
    """Trajectories of agents that left early."""
    returns: dict[AgentId, float] = field(default_factory=lambda: defaultdict(float))
    turns: Counter[AgentId] = field(default_factory=Counter)
    length: int = 0
    """Env steps so far."""
    missing: int = 0
    """Rewards that were missing and whose trajectories still lie in this fragment."""
    incomplete: bool = False
    """A reward was missing at any time, so the return is unknown."""
    started: float = field(default_factory=time.perf_counter)


def policy_hash(module: Any) -> str:
    """SHA-256 over the parameters that decide: names in order, types, shapes and bytes.

    A critic that only the learner has (RLlib's ``inference_only``) does not count, so a runner's and the learner's
    hash are the same when their policies are.
    """
    told = sha256()
    for name, value in sorted(module.get_state(inference_only=True).items()):
        array = np.ascontiguousarray(value)
        told.update(f"{name}\x1f{array.dtype}\x1f{array.shape}\x1f".encode())
        told.update(array.tobytes())
    return told.hexdigest()
