"""PettingZoo environments as RLlib sees them: one step is one turn (AEC) or one round (parallel).

RLlib's own wrappers hang on mixed termination and truncation and lose the bootstrap of agents that are cut. Here
RLlib hears only ``__all__``; how each agent's part ended stands in ``ends``, which the runner reads after every step.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray.rllib.env.multi_agent_env import MultiAgentEnv

from runtime.errors import TeamError
from runtime.seams import digest
from runtime.types import AgentId

Infos = dict[AgentId, dict[str, Any]]
Step = tuple[dict[AgentId, Any], dict[AgentId, float], dict[str, bool], dict[str, bool], Infos]


@dataclass(frozen=True, slots=True)
class Ending:
    """How one agent's part of an episode ended."""

    terminated: bool
    """False: it was cut, and what it last saw has a value still."""
    last: Any
    """Its last observation; None where it terminated and nothing follows."""


class Adapter(MultiAgentEnv):
    """What AEC and parallel environments have in common.

    ``reset(seed=…, options={"episode": k})`` plays episode k of the seed, whatever was played before. An environment
    whose infos carry a ``key`` knows about episodes itself and gets both; any other gets a seed made of the two.
    """

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.env = env
        self.seats: list[AgentId] = list(env.possible_agents)
        """All agents there can be; RLlib knows them under its own two names."""
        self.possible_agents = list(self.seats)
        self.agents = list(self.seats)
        self.observation_spaces = {a: env.observation_space(a) for a in self.seats}
        self.action_spaces = {a: env.action_space(a) for a in self.seats}
        self.ends: dict[AgentId, Ending] = {}
        """Agents whose part ended in the last step."""
        self._acted: set[AgentId] = set()
        self._turns: Counter[AgentId] = Counter()
        self._key: tuple[Any, ...] = ()
        self._knows_episodes: bool | None = None
        self._opened = 0

    @property
    def team_return(self) -> float | None:
        """Return of the team so far, where the environment says it; NaN when a reward of it is missing."""
        return getattr(self.env.unwrapped, "team_return", None)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Infos]:
        episode = int((options or {}).get("episode", self._opened))
        self._opened, self._key = episode + 1, (seed or 0, episode)
        self.ends, self._acted = {}, set()
        self._turns.clear()
        if self._knows_episodes is not False:
            observations, infos = self._open(seed, {**(options or {}), "episode": episode})
            self._knows_episodes = any("key" in info for info in infos.values())
            if self._knows_episodes:
                return observations, infos
        observations, infos = self._open(digest(*self._key) % 2**31, None)
        return observations, {a: self._keyed(a, info) for a, info in infos.items()}

    def step(self, action_dict: Mapping[AgentId, Any]) -> Step:
        raise NotImplementedError

    def close(self) -> None:
        self.env.close()

    def _open(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[AgentId, Any], Infos]:
        """Reset the environment; observations and infos of who acts first."""
        raise NotImplementedError

    def _keyed(self, agent: AgentId, info: dict[str, Any]) -> dict[str, Any]:
        """The info with what the agent's next decision draws its chance from."""
        return info if "key" in info else {**info, "key": self._key, "turn": self._turns[agent]}

    def _took(self, actions: Mapping[AgentId, Any]) -> None:
        self.ends = {}
        self._acted.update(actions)
        self._turns.update(actions.keys())

    def _closing(self, rewards: dict[AgentId, float], cut: bool) -> Step:
        """The last step of an episode: RLlib wants a last observation of everybody who is cut."""
        last = {a: e.last for a, e in self.ends.items() if e.last is not None and a in self._acted}
        return last, rewards, {"__all__": not cut}, {"__all__": cut}, {a: {} for a in last}


_GOING = {"__all__": False}


class AECAdapter(Adapter):
    """One RLlib step is one AEC turn. Rewards are everybody's of that very turn, from ``env.rewards``."""

    def _open(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[AgentId, Any], Infos]:
        self.env.reset(seed=seed, options=options)
        agent = self.env.agent_selection
        return {agent: self.env.observe(agent)}, {agent: self.env.infos.get(agent, {})}

    def step(self, action_dict: Mapping[AgentId, Any]) -> Step:
        env, agent = self.env, self.env.agent_selection
        live = list(env.agents)
        self._took(action_dict)
        env.step(action_dict[agent])
        rewards = {a: float(env.rewards.get(a, 0.0)) for a in live}
        if env.terminations[env.agent_selection] or env.truncations[env.agent_selection]:
            self._let_go()
        if not env.agents:
            return self._closing(rewards, cut=any(not e.terminated for e in self.ends.values()))
        turn = env.agent_selection
        info = self._keyed(turn, env.infos.get(turn, {}))
        rewards.setdefault(turn, 0.0)
        return {turn: env.observe(turn)}, rewards, _GOING, _GOING, {turn: info}

    def _let_go(self) -> None:
        """Take the agents that are done out of the environment, as AEC asks, and note how each ended."""
        env = self.env
        cut = any(env.truncations.values())
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            agent = env.agent_selection
            ended = bool(env.terminations[agent])
            self.ends[agent] = Ending(ended, env.observe(agent) if cut else None)
            env.step(None)
            if agent in env.agents:
                raise TeamError(
                    f"{agent} is done, yet step(None) did not take it out of {type(env.unwrapped).__name__}"
                )


class ParallelAdapter(Adapter):
    """One RLlib step is one round in which everybody acts."""

    def _open(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[AgentId, Any], Infos]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return dict(observations), {a: infos.get(a, {}) for a in observations}

    def step(self, action_dict: Mapping[AgentId, Any]) -> Step:
        self._took(action_dict)
        seen, paid, terminated, truncated, infos = self.env.step(dict(action_dict))
        rewards = {a: float(r) for a, r in paid.items()}
        cut = any(truncated[a] and not terminated[a] for a in truncated)
        for a in action_dict:
            if terminated[a] or truncated[a]:
                self.ends[a] = Ending(bool(terminated[a]), seen.get(a) if cut else None)
        live = [a for a in self.env.agents if a not in self.ends]
        if not live:
            return self._closing(rewards, cut)
        turns = {a: self._keyed(a, infos.get(a, {})) for a in live}
        return {a: seen[a] for a in live}, rewards, _GOING, _GOING, turns
