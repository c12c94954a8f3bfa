"""A guard around games with masks: an illegal move is an error of who chose it, and never quietly loses the game."""

from typing import Any, cast

import numpy as np
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

from runtime.types import AgentId

StepResult = tuple[
    dict[AgentId, Any], dict[AgentId, float], dict[AgentId, bool], dict[AgentId, bool], dict[AgentId, dict[str, Any]]
]


class IllegalMove(ValueError):
    """A move that the game's mask rules out."""


def legal(observation: Any, info: Any) -> np.ndarray[Any, Any] | None:
    """The mask that comes with an observation (or with its info), or None where every action is legal."""
    for place in (observation, info):
        if isinstance(place, dict) and "action_mask" in place:
            return np.asarray(cast("dict[str, Any]", place)["action_mask"])
    return None


def refuse_illegal(agent: AgentId, action: Any, mask: np.ndarray[Any, Any] | None) -> None:
    """Raise IllegalMove when the mask rules the action out."""
    if mask is None or action is None:
        return
    if not 0 <= int(action) < len(mask) or not mask[int(action)]:
        allowed = np.flatnonzero(mask).tolist()
        raise IllegalMove(f"{agent} played {action}, which its action mask rules out; legal: {allowed}")


class LegalMoves(BaseWrapper[AgentId, Any, Any]):
    """An AEC game that raises IllegalMove, where PettingZoo's own wrappers would warn and end the game as lost."""

    def __init__(self, env: AECEnv[AgentId, Any, Any]) -> None:
        super().__init__(env)
        self._seen: tuple[AgentId, Any] | None = None

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Open an episode."""
        self._seen = None
        cast("Any", super()).reset(seed=seed, options=options)

    def observe(self, agent: AgentId) -> Any:
        """What the agent sees."""
        observation = super().observe(agent)
        if agent == self.agent_selection:
            self._seen = (agent, observation)
        return observation

    def step(self, action: Any) -> None:
        """Make the selected agent's move. Raises IllegalMove if its mask rules it out."""
        agent = self.agent_selection
        if action is not None:
            seen = self._seen[1] if self._seen and self._seen[0] == agent else self.observe(agent)
            refuse_illegal(agent, action, legal(seen, self.infos.get(agent)))
        self._seen = None
        super().step(action)


class ParallelLegalMoves(BaseParallelWrapper[AgentId, Any, Any]):
    """A parallel game that raises IllegalMove."""

    def __init__(self, env: ParallelEnv[AgentId, Any, Any]) -> None:
        super().__init__(env)
        self._masks: dict[AgentId, np.ndarray[Any, Any] | None] = {}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentId, Any], dict[AgentId, dict[str, Any]]]:
        """Open an episode."""
        seen, infos = cast("Any", super()).reset(seed=seed, options=options)
        self._masks = {a: legal(seen[a], infos.get(a)) for a in seen}
        return seen, infos

    def step(self, actions: dict[AgentId, Any]) -> StepResult:
        """Make everybody's moves. Raises IllegalMove if a mask rules one out."""
        for agent, action in actions.items():
            refuse_illegal(agent, action, self._masks.get(agent))
        result: StepResult = cast("Any", super()).step(actions)
        self._masks = {a: legal(result[0][a], result[4].get(a)) for a in result[0]}
        return result
