"""A built experiment as the audit's material: sessions to play, scenarios to play them on, games to step."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from assembly.build import Build
from envs.moves import legal
from envs.pettingzoo_env import Game, make
from envs.scenarios import Generated, Listed, Source
from envs.session import Session
from rewards.audit.games import GameTable, OpensGame, Sight
from rewards.audit.material import USUAL, Effort, Evaluating, Material
from rewards.audit.playing import Opens
from runtime.records import Json
from runtime.types import AgentId, Scenario, Team

CLOCK_START = 1_700_000_000.0
"""Unix time, s, at which a session of the audit begins; each decision takes one second."""


def material_of(build: Build, effort: Effort = USUAL, evaluating: Evaluating | None = None) -> Material:
    """What the checks read, of an experiment."""
    made = Material(
        name=build.experiment.name,
        agents=build.agents,
        mix=build.judge,
        seed=build.experiment.seed,
        effort=effort,
        evaluating=evaluating,
        own={"standardize": build.experiment.rewards.standardize.model_dump()},
    )
    if build.team is None:
        name, args = build.experiment.team.pettingzoo, build.experiment.team.args
        assert name is not None
        made.open_game = games(lambda: make(name, args))
        return made
    made.team, made.open = build.team, sessions(build.team)
    made.sources = {split: build.source(split) for split in ("train", "eval")}
    made.counts = {split: _count(build.source(split)) for split in ("train", "eval")}
    made.listed = frozenset(split for split in made.sources if isinstance(build.source(split), Listed))
    return made


def _count(source: Source) -> int | None:
    return len(source.scenarios) if isinstance(source, Listed) else source.count


def team_material(team: Team, mix: Any, *, seed: int = 0, effort: Effort = USUAL, eval_seed: int = 2) -> Material:
    """What the checks read, of a team that makes its own scenarios, with no experiment file."""
    return Material(
        name=team.name,
        agents=tuple(r.name for r in team.roles),
        mix=mix,
        seed=seed,
        team=team,
        open=sessions(team),
        sources={"train": Generated(team, "train", 1 + seed), "eval": Generated(team, "eval", eval_seed + seed)},
        effort=effort,
    )


def sessions(own: Team) -> Opens:
    """Opens sessions of the team (or of one given then) whose clock counts decisions."""

    def open_session(scenario: Scenario, seed: int, team: Team | None = None) -> Session:
        ticks = count()
        return Session(team or own, scenario, seed=seed, clock=lambda: CLOCK_START + next(ticks))

    return open_session


def games(make_env: Callable[[], Game]) -> OpensGame:
    """Opens environments: each call makes a fresh one, reset with the seed."""

    def open_game(seed: int) -> GameTable:
        env = make_env()
        return AECTable(env, seed) if isinstance(env, AECEnv) else ParallelTable(env, seed)

    return open_game


def _sight(agent: AgentId, seen: Any, info: Any) -> Sight:
    mask = legal(seen, info)
    parts = cast("dict[str, Any]", seen) if isinstance(seen, dict) else {"": seen}
    arrays = [np.asarray(v, np.float64).ravel() for k, v in parts.items() if k != "action_mask"]
    return Sight(agent, np.concatenate(arrays), None if mask is None else tuple(bool(m) for m in mask))


class _Playing:
    """What both forms share."""

    def __init__(self, env: Game, seed: int) -> None:
        self._env: Any = env
        self.truncated = False
        self.success: bool | None = None
        self.truth: Mapping[str, Json] = {}
        self._paid: dict[AgentId, float] = {}

    def sample(self, agent: AgentId, chance: int) -> Any:
        """An action from the agent's space, within its mask."""
        space: spaces.Space[Any] = self._env.action_space(agent)
        space.seed(chance)
        mask = self.observe(agent).mask
        return space.sample() if mask is None else space.sample(np.asarray(mask, np.int8))

    def observe(self, agent: AgentId) -> Sight:
        """What the agent sees."""
        raise NotImplementedError

    def _told(self, infos: Mapping[AgentId, Any]) -> None:
        for info in infos.values():
            if "truth" in info:
                self.truth = {**self.truth, **info["truth"]}
            if "success" in info:
                self.success = bool(info["success"])


class AECTable(_Playing):
    """A game of turns."""

    def __init__(self, env: AECEnv[AgentId, Any, Any], seed: int) -> None:
        super().__init__(env, seed)
        self._env.reset(seed=seed)
        self._told(self._env.infos)
        self._skip_the_dead()

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """Whose turn it is."""
        return (self._env.agent_selection,) if self._env.agents else ()

    def observe(self, agent: AgentId) -> Sight:
        """What the agent sees."""
        return _sight(agent, self._env.observe(agent), self._env.infos.get(agent, {}))

    def act(self, actions: Mapping[AgentId, Any]) -> Mapping[AgentId, float]:
        """Move, and return what everybody was paid for it."""
        ((_, action),) = actions.items()
        self._env.step(action)
        paid = {a: float(r) for a, r in self._env.rewards.items()}
        self._told(self._env.infos)
        self.truncated |= any(self._env.truncations.values())
        self._skip_the_dead()
        return paid

    def _skip_the_dead(self) -> None:
        env = self._env
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)


class ParallelTable(_Playing):
    """A game in which everybody moves at once."""

    def __init__(self, env: Game, seed: int) -> None:
        super().__init__(env, seed)
        self._seen, self._infos = self._env.reset(seed=seed)
        self._told(self._infos)

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """All who are still in."""
        return tuple(self._env.agents)

    def observe(self, agent: AgentId) -> Sight:
        """What the agent sees."""
        return _sight(agent, self._seen[agent], self._infos.get(agent, {}))

    def act(self, actions: Mapping[AgentId, Any]) -> Mapping[AgentId, float]:
        """Move, and return what everybody was paid for it."""
        self._seen, paid, _, truncated, self._infos = self._env.step(dict(actions))
        self._told(self._infos)
        self.truncated |= any(truncated.values())
        return {a: float(r) for a, r in paid.items()}
