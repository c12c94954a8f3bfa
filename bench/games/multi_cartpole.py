"""MultiAgentCartPole, RLlib's example: a pole for each agent; whose pole falls leaves, the others go on."""

from typing import Any

import gymnasium as gym
import numpy as np
from pettingzoo import ParallelEnv

from runtime.types import AgentId

Seen = np.ndarray[Any, np.dtype[np.float32]]


class MultiCartPole(ParallelEnv[AgentId, Seen, int]):
    """Gymnasium's CartPole-v1 for each agent: a reward of 1 a step, cut after 500 steps.

    Args:
        agents: how many poles there are.
    """

    metadata = {"name": "multi_cartpole_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, agents: int = 2) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents: list[AgentId] = []
        self._poles = {a: gym.make("CartPole-v1") for a in self.possible_agents}

    def observation_space(self, agent: AgentId) -> gym.Space[Any]:
        """Position, speed, angle and angular speed of the agent's own pole."""
        return self._poles[agent].observation_space

    def action_space(self, agent: AgentId) -> gym.Space[Any]:
        """Push left or right."""
        return self._poles[agent].action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentId, Seen], dict[AgentId, dict[str, Any]]]:
        """Set up all poles, each from a seed of its own."""
        self.agents = list(self.possible_agents)
        count = len(self.agents)
        seeds = {a: None if seed is None else seed * count + i for i, a in enumerate(self.agents)}
        return {a: self._poles[a].reset(seed=seeds[a])[0] for a in self.agents}, {a: {} for a in self.agents}

    def step(self, actions: dict[AgentId, int]) -> Any:
        """Everybody whose pole still stands pushes."""
        taken = {a: self._poles[a].step(int(x)) for a, x in actions.items()}
        seen, paid, terminated, truncated = ({a: t[i] for a, t in taken.items()} for i in range(4))
        self.agents = [a for a in self.agents if not (terminated[a] or truncated[a])]
        return seen, {a: float(r) for a, r in paid.items()}, terminated, truncated, {a: {} for a in taken}

    def close(self) -> None:
        """Close all poles."""
        for pole in self._poles.values():
            pole.close()


def parallel_env(agents: int = 2) -> MultiCartPole:
    """The game."""
    return MultiCartPole(agents)
