"""A team as a PettingZoo environment: AEC where turns are taken, parallel where they are simultaneous."""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from envs.candidates import candidates
from envs.scenarios import Source
from envs.session import Sampled, Session
from envs.tally import Tally
from runtime.errors import TeamError
from runtime.seams import digest
from runtime.types import AgentId, Judge, Paid, Team

MAX_TEXT = 1_000_000
"""Characters an observation may have; a bound for the space, far above what sessions produce."""

Obs = dict[str, Any]
"""``text``: str; ``action_mask``: (K,) int8, 1 where the candidate is legal."""


class AnyText(spaces.Text):
    """Text of any characters: gymnasium's own space admits only a listed alphabet."""

    def contains(self, x: Any) -> bool:
        """Whether it is text of at most ``max_length`` characters."""
        return isinstance(x, str) and len(x) <= self.max_length


def unpaid(played: object, since: int) -> Paid:
    """A judge that pays nothing."""
    return Paid(0.0, {}, ())


class _Stage:
    """What both forms share: the team, its scenarios, its judge, and the session being played."""

    def __init__(self, team: Team, source: Source, judge: Judge = unpaid, seed: int = 0) -> None:
        self.team, self.source, self.judge, self.seed = team, source, judge, seed
        self.team_return = 0.0
        """Return of the team so far in this episode, in the reward terms' unit; NaN once a reward is missing."""
        self.tally = Tally()
        self._episode = -1
        self._spaces: dict[AgentId, spaces.Discrete[np.int64]] = {}
        self.session: Session | None = None

    def action_space(self, agent: AgentId) -> spaces.Discrete[np.int64]:
        """One space object an agent, as PettingZoo asks."""
        if agent not in self._spaces:
            self._spaces[agent] = spaces.Discrete(len(candidates(self.team, self.team.role(agent))))
        return self._spaces[agent]

    @property
    def playing(self) -> Session:
        """The session; raises TeamError before the first reset."""
        if self.session is None:
            raise TeamError("call reset() first")
        return self.session

    def open(self, seed: int | None, options: Mapping[str, Any] | None) -> Session:
        if options and "episode" in options:
            self._episode = int(options["episode"])
        elif seed is not None:
            self._episode = digest("episode", seed) % 2**31
        else:
            self._episode += 1
        scenario = self.source(self._episode)
        epoch = self.source.epoch(self._episode)
        self.session = Session(self.team, scenario, seed=self.seed + epoch)
        self.team_return = 0.0
        return self.session

    def pay(self, since: int) -> Paid:
        paid = self.judge(self.playing, since)
        self.playing.note(paid.records)
        self.team_return += paid.team
        if self.playing.ended:
            self.tally.add(self.playing, self.team_return)
        return paid

    def drain(self) -> Tally:
        drained, self.tally = self.tally, Tally()
        return drained

    def look(self, agent: AgentId) -> Obs:
        seen = self.playing.observe(agent)
        return {"text": seen.text, "action_mask": np.asarray(seen.mask, np.int8)}

    def info(self, agent: AgentId) -> dict[str, Any]:
        seen = self.playing.observe(agent)
        return {"key": seen.key, "turn": seen.turn}


@cache
def _observation_space(count: int) -> spaces.Dict:
    return spaces.Dict({"text": AnyText(MAX_TEXT), "action_mask": spaces.Box(0, 1, (count,), np.int8)})


class TeamEnv(AECEnv[AgentId, Obs, int]):
    """A team with turns, as an AEC environment.

    Observations are ``{"text": str, "action_mask": (K,) int8}``, actions the index of one of the role's K candidates.
    A reward of NaN is missing: a term failed, and the return is unknown.

    Args:
        team: what is played.
        source: ``source(k)`` is scenario k; ``reset(options={"episode": k})`` plays it.
        judge: what each step is worth.
        seed: the run's seed, from which every decision's chance is drawn.
    """

    metadata = {"name": "repertory_team_v0", "render_modes": ["ansi"], "is_parallelizable": False}  # noqa: RUF012
    render_mode = "ansi"

    def __init__(self, team: Team, source: Source, judge: Judge = unpaid, seed: int = 0) -> None:
        if team.turns.kind == "simultaneous":
            raise TeamError(
                f"team {team.name} acts simultaneously: use ParallelTeamEnv (or PettingZoo's parallel_to_aec of it)"
            )
        self._stage = _Stage(team, source, judge, seed)
        self.possible_agents = [r.name for r in team.roles]
        self.agents: list[AgentId] = []

    @property
    def session(self) -> Session:
        """The session being played."""
        return self._stage.playing

    @property
    def team_return(self) -> float:
        """Return of the team so far in this episode."""
        return self._stage.team_return

    def drain(self) -> Tally:
        """Sums over the episodes that ended since the last call."""
        return self._stage.drain()

    def observation_space(self, agent: AgentId) -> spaces.Dict:
        """``text`` and the mask over the role's candidates."""
        return _observation_space(len(candidates(self._stage.team, self._stage.team.role(agent))))

    def action_space(self, agent: AgentId) -> spaces.Discrete[np.int64]:
        """The role's candidates, by index."""
        return self._stage.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Open an episode: the one named by ``options["episode"]``, or one drawn from the seed, or the next."""
        session = self._stage.open(seed, options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.agent_selection = session.to_act[0]
        self.infos = {a: self._stage.info(a) for a in self.agents}

    def observe(self, agent: AgentId) -> Obs:
        """What the agent sees now."""
        return self._stage.look(agent)

    def step(self, action: int | None) -> None:
        """The selected agent makes the call of that index (None once it is done)."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(cast(int, action))
            return
        self._cumulative_rewards[agent] = 0.0
        session = self._stage.playing
        since = len(session.records)
        session.act(agent, _index(action), self._sampled())
        paid = self._stage.pay(since)
        self.rewards = {a: paid.to(a) for a in self.agents}
        self._accumulate_rewards()
        if session.ended:
            ends = self.truncations if session.truncated else self.terminations
            ends.update(dict.fromkeys(self.agents, True))
            self.agent_selection = self.agents[0]
        else:
            self.agent_selection = session.to_act[0]
            self.infos[self.agent_selection] = self._stage.info(self.agent_selection)

    def sampled_as(self, sampled: Sampled) -> None:
        """Tell how the next action came about, for the record."""
        self._how = sampled

    def _sampled(self) -> Sampled:
        how = getattr(self, "_how", None) or Sampled()
        self._how = None
        return how

    def render(self) -> str:
        """What the agent whose turn it is sees, as text."""
        return f"{self.agent_selection}\n{self._stage.look(self.agent_selection)['text']}"

    def close(self) -> None:
        """Nothing to release."""


class ParallelTeamEnv(ParallelEnv[AgentId, Obs, int]):
    """A team that acts simultaneously; spaces, rewards and arguments as in TeamEnv."""

    metadata = {"name": "repertory_parallel_team_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, team: Team, source: Source, judge: Judge = unpaid, seed: int = 0) -> None:
        if team.turns.kind != "simultaneous":
            raise TeamError(f"team {team.name} takes turns: use TeamEnv")
        self._stage = _Stage(team, source, judge, seed)
        self.possible_agents = [r.name for r in team.roles]
        self.agents: list[AgentId] = []

    @property
    def session(self) -> Session:
        """The session being played."""
        return self._stage.playing

    @property
    def team_return(self) -> float:
        """Return of the team so far in this episode."""
        return self._stage.team_return

    def drain(self) -> Tally:
        """Sums over the episodes that ended since the last call."""
        return self._stage.drain()

    def observation_space(self, agent: AgentId) -> spaces.Dict:
        """``text`` and the mask over the role's candidates."""
        return _observation_space(len(candidates(self._stage.team, self._stage.team.role(agent))))

    def action_space(self, agent: AgentId) -> spaces.Discrete[np.int64]:
        """The role's candidates, by index."""
        return self._stage.action_space(agent)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentId, Obs], dict[AgentId, dict[str, Any]]]:
        """Open an episode, as TeamEnv does."""
        self._stage.open(seed, options)
        self.agents = list(self.possible_agents)
        return self._looks(), {a: self._stage.info(a) for a in self.agents}

    def step(
        self, actions: dict[AgentId, int]
    ) -> tuple[
        dict[AgentId, Obs],
        dict[AgentId, float],
        dict[AgentId, bool],
        dict[AgentId, bool],
        dict[AgentId, dict[str, Any]],
    ]:
        """Everybody makes a call."""
        session = self._stage.playing
        since = len(session.records)
        session.act_all({a: _index(x) for a, x in actions.items()})
        paid = self._stage.pay(since)
        agents, observations = self.agents, self._looks()
        infos = {a: self._stage.info(a) for a in agents}
        terminated = dict.fromkeys(agents, session.ended and not session.truncated)
        truncated = dict.fromkeys(agents, session.truncated)
        if session.ended:
            self.agents = []
        return observations, {a: paid.to(a) for a in agents}, terminated, truncated, infos

    def _looks(self) -> dict[AgentId, Obs]:
        return {a: self._stage.look(a) for a in self.agents}

    def render(self) -> None:
        """Nothing to draw."""

    def close(self) -> None:
        """Nothing to release."""


def _index(action: Any) -> Any:
    """A plain int of a numpy one; anything else is left for the session to refuse."""
    return int(cast(int, action)) if isinstance(action, np.integer | int) else action


def team_env(team: Team, source: Source, judge: Judge = unpaid, seed: int = 0) -> TeamEnv | ParallelTeamEnv:
    """The environment of the form that the team's turns ask for."""
    form = ParallelTeamEnv if team.turns.kind == "simultaneous" else TeamEnv
    return form(team, source, judge, seed)
