"""The two-step game (Rashid et al. 2018, section 5.1): the safe branch pays 7, the risky one up to 8.

Agent 0's first action chooses the branch. In the safe one every joint action pays 7; in the risky one the joint action
(A, A) pays 0, (A, B) and (B, A) pay 1, (B, B) pays 8. The team's payoff is split evenly, so returns add up to it.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from pettingzoo import ParallelEnv

from runtime.types import AgentId

AGENTS = ("agent_0", "agent_1")
FIRST, SAFE, RISKY = range(3)
"""States."""
SAFE_PAYS = 7.0
RISKY_PAYS = ((0.0, 1.0), (1.0, 8.0))
"""Payoff of the team in the risky branch, by agent 0's action and agent 1's."""

Seen = np.ndarray[Any, np.dtype[np.float32]]


class TwoStep(ParallelEnv[AgentId, Seen, int]):
    """Observations are the state, one-hot; two actions each; two rounds."""

    metadata = {"name": "two_step_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = list(AGENTS)
        self.agents: list[AgentId] = []
        self._seen = gym.spaces.Box(0.0, 1.0, (3,), np.float32)
        self._does = gym.spaces.Discrete(2)
        self._state = FIRST

    def observation_space(self, agent: AgentId) -> gym.Space[Any]:
        """The state, one-hot."""
        return self._seen

    def action_space(self, agent: AgentId) -> gym.Space[Any]:
        """A or B."""
        return self._does

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentId, Seen], dict[AgentId, dict[str, Any]]]:
        """Begin in the first state."""
        self.agents, self._state = list(AGENTS), FIRST
        return self._looks(), {a: {} for a in AGENTS}

    def step(self, actions: dict[AgentId, int]) -> Any:
        """Choose the branch, or be paid."""
        first, second = (int(actions[a]) for a in AGENTS)
        paid, over = 0.0, self._state != FIRST
        if over:
            paid = SAFE_PAYS if self._state == SAFE else RISKY_PAYS[first][second]
            self.agents = []
        else:
            self._state = (SAFE, RISKY)[first]
        each = dict.fromkeys(AGENTS, paid / len(AGENTS))
        return self._looks(), each, dict.fromkeys(AGENTS, over), dict.fromkeys(AGENTS, False), {a: {} for a in AGENTS}

    def _looks(self) -> dict[AgentId, Seen]:
        seen = np.eye(3, dtype=np.float32)[self._state]
        return dict.fromkeys(AGENTS, seen)


def parallel_env() -> TwoStep:
    """The game."""
    return TwoStep()
