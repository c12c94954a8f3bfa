"""Teammates that do not learn: they take their turns inside the environment, so that the trainer never sees them."""

from collections.abc import Mapping
from typing import Any

from policies.playing import Playable, Turn
from runtime.errors import TeamError
from runtime.types import AgentId


class _Seated:
    """What both forms share: the learners are this environment's agents, everybody else is played."""

    def __init__(self, env: Any, seats: Mapping[AgentId, Playable]) -> None:
        self.env, self.seats = env, seats
        self.possible_agents = [a for a in env.possible_agents if a not in seats]

    @property
    def agents(self) -> list[AgentId]:
        """Learning agents that are still in the episode."""
        return [a for a in self.env.agents if a not in self.seats]

    @property
    def unwrapped(self) -> Any:
        """The environment inside."""
        return self.env.unwrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def _decide(self, agent: AgentId, seen: Any, info: Mapping[str, Any]) -> Any:
        session = getattr(self.env.unwrapped, "session", None)
        if session is None or "key" not in info:
            raise TeamError(f"{agent} is scripted, and a PettingZoo environment gives rules nothing to read")
        turn = Turn(agent, seen, tuple(info["key"]), info["turn"], lambda: session.observe(agent))
        (choice,) = self.seats[agent].decide([turn], greedy=False)
        if choice.spent is not None:
            session.asked(agent, choice.spent.fields())
        return choice.action


class SeatedAEC(_Seated):
    """An AEC environment whose scripted agents play themselves between the learners' turns."""

    def __init__(self, env: Any, seats: Mapping[AgentId, Playable]) -> None:
        super().__init__(env, seats)
        self.rewards: dict[AgentId, float] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Open an episode and play up to the first learner's turn."""
        self.env.reset(seed=seed, options=options)
        self._play_on()
        if not self.agents:
            raise TeamError("the scripted roles ended the episode before any learning role had a turn")

    def step(self, action: Any) -> None:
        """A learner acts; rewards are those of all turns up to the next learner's."""
        self.env.step(action)
        self.rewards = dict(self.env.rewards)
        self._play_on()

    def _play_on(self) -> None:
        env = self.env
        while env.agents and env.agent_selection in self.seats:
            agent = env.agent_selection
            if env.terminations[agent] or env.truncations[agent]:
                env.step(None)
                continue
            env.step(self._decide(agent, env.observe(agent), env.infos.get(agent, {})))
            for a, reward in env.rewards.items():
                self.rewards[a] = self.rewards.get(a, 0.0) + reward


class SeatedParallel(_Seated):
    """A parallel environment whose scripted agents act beside the learners."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Open an episode."""
        self._seen, self._infos = self.env.reset(seed=seed, options=options)
        return self._learners(self._seen), self._learners(self._infos)

    def step(self, actions: Mapping[AgentId, Any]) -> tuple[Any, ...]:
        """Everybody acts; only the learners' part is told."""
        theirs = {a: self._decide(a, self._seen[a], self._infos[a]) for a in self.env.agents if a in self.seats}
        self._seen, *rest, self._infos = self.env.step({**actions, **theirs})
        return (self._learners(self._seen), *(self._learners(r) for r in rest), self._learners(self._infos))

    def _learners(self, values: Mapping[AgentId, Any]) -> dict[AgentId, Any]:
        return {a: v for a, v in values.items() if a not in self.seats}


def seated(env: Any, seats: Mapping[AgentId, Playable]) -> Any:
    """The environment as its learners see it."""
    if not seats:
        return env
    return (
        SeatedAEC(env, seats) if hasattr(env, "agent_selection") or hasattr(env, "last") else SeatedParallel(env, seats)
    )
