"""Small PettingZoo games that the tests name as an author would name his own."""

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

MASKED = spaces.Dict(
    {"observation": spaces.Box(0, 1, (2,), np.float32), "action_mask": spaces.Box(0, 1, (3,), np.int8)}
)


class Leaving(ParallelEnv[str, Any, int]):
    """Agent k leaves after k + 1 rounds; the last one is truncated, the others terminate."""

    metadata = {"name": "leaving_v0"}  # noqa: RUF012

    def __init__(self, agents: int = 3, action: Any = None, seen: Any = None) -> None:
        self.possible_agents = [f"agent_{k}" for k in range(agents)]
        self.agents: list[str] = []
        self._action = action or spaces.Discrete(3)
        self._seen = seen or MASKED

    def observation_space(self, agent: str) -> Any:
        return self._seen

    def action_space(self, agent: str) -> Any:
        return self._action

    def _look(self) -> dict[str, Any]:
        mask = np.array([1, 0, 1], np.int8)
        return {a: {"observation": np.full(2, 0.5, np.float32), "action_mask": mask.copy()} for a in self.agents}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self.round, self.options = list(self.possible_agents), 0, options
        return self._look(), {a: {} for a in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        acting, last = self.agents, self.possible_agents[-1]
        seen = self._look()
        gone = [a for a in acting if int(a.split("_")[1]) <= self.round]
        self.round += 1
        self.agents = [a for a in acting if a not in gone]
        return (
            seen, dict.fromkeys(acting, 1.0), {a: a in gone and a != last for a in acting},
            {a: a in gone and a == last for a in acting}, {a: {} for a in acting},
        )  # fmt: skip


class Counting(AECEnv[str, Any, int]):
    """One agent counts to three; the mask stands in the infos."""

    metadata = {"name": "counting_v0"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["counter_0"]
        self._space, self._actions = spaces.Discrete(4), spaces.Discrete(2)

    def observation_space(self, agent: str) -> Any:
        return self._space

    def action_space(self, agent: str) -> Any:
        return self._actions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.agents, self.agent_selection, self.count = ["counter_0"], "counter_0", 0
        self.rewards, self._cumulative_rewards = {"counter_0": 0.0}, {"counter_0": 0.0}
        self.terminations, self.truncations = {"counter_0": False}, {"counter_0": False}
        self.infos = {"counter_0": {"action_mask": np.array([0, 1], np.int8)}}

    def observe(self, agent: str) -> int:
        return self.count

    def step(self, action: int) -> None:
        if self.terminations["counter_0"]:
            self._was_dead_step(action)
            return
        self.count += action
        self.terminations["counter_0"] = self.count >= 3


def nameless() -> Leaving:
    return Leaving(agents=0)


def odd_actions() -> Leaving:
    return Leaving(action=spaces.MultiBinary(3))


def endless_actions() -> Leaving:
    return Leaving(action=spaces.Box(-np.inf, np.inf, (2,)))


def shifted_actions() -> Leaving:
    return Leaving(action=spaces.Discrete(3, start=1))


def short_mask() -> Leaving:
    return Leaving(action=spaces.Discrete(5))


def odd_observation() -> Leaving:
    return Leaving(seen=spaces.Sequence(spaces.Discrete(2)))


def nothing() -> int:
    return 3


def failing() -> Leaving:
    raise RuntimeError("no licence")
