"""A relay that costs next to nothing to step: what is left is the trainer's own time."""

from typing import Any

import gymnasium as gym
import numpy as np
from pettingzoo import AECEnv

from runtime.types import AgentId

ABC = ("A", "B", "C")
TARGETS = 4
"""Possible answers."""

Obs = dict[str, Any]


class Relay(AECEnv[AgentId, Obs, int]):
    """A → B → C, ``rounds`` times: each is shown a target and should name it; all are paid the hits at the end.

    Args:
        rounds: turns each; an episode has three times as many.
    """

    metadata = {"name": "relay_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012
    render_mode = None

    def __init__(self, rounds: int = 1) -> None:
        self.possible_agents = list(ABC)
        self.agents: list[AgentId] = []
        self.rounds = rounds
        box = gym.spaces.Box(0.0, 1.0, (TARGETS + 2,), np.float32)
        self._seen = gym.spaces.Dict({"observation": box, "action_mask": gym.spaces.Box(0, 1, (TARGETS,), np.int8)})
        self._does = gym.spaces.Discrete(TARGETS)
        self._mask = np.ones(TARGETS, np.int8)

    def observation_space(self, agent: AgentId) -> gym.Space[Any]:
        """The target, one-hot, the share of turns taken and of hits; every answer is legal."""
        return self._seen

    def action_space(self, agent: AgentId) -> gym.Space[Any]:
        """An answer."""
        return self._does

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Draw all targets."""
        self.agents = list(ABC)
        self._targets = np.random.default_rng(seed).integers(TARGETS, size=3 * self.rounds).tolist()
        self._turn = self._hits = 0
        self.rewards = dict.fromkeys(ABC, 0.0)
        self._cumulative_rewards = dict.fromkeys(ABC, 0.0)
        self.terminations = dict.fromkeys(ABC, False)
        self.truncations = dict.fromkeys(ABC, False)
        self.infos: dict[AgentId, dict[str, Any]] = {a: {} for a in ABC}
        self.agent_selection = ABC[0]

    def observe(self, agent: AgentId) -> Obs:
        """The current target."""
        turns = 3 * self.rounds
        seen = np.zeros(TARGETS + 2, np.float32)
        seen[self._targets[min(self._turn, turns - 1)]] = 1.0
        seen[TARGETS], seen[TARGETS + 1] = self._turn / turns, self._hits / turns
        return {"observation": seen, "action_mask": self._mask}

    def step(self, action: int | None) -> None:
        """Answer."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._hits += int(action == self._targets[self._turn])
        self._turn += 1
        over = self._turn >= 3 * self.rounds
        self.rewards = dict.fromkeys(self.agents, float(self._hits) if over else 0.0)
        self._accumulate_rewards()
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = ABC[self._turn % 3]

    def close(self) -> None:
        """Nothing to release."""


def env(rounds: int = 1) -> Relay:
    """The game."""
    return Relay(rounds)
