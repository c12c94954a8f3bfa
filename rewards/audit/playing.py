"""Runs of a team for the audit: a table to play at, and what a played episode leaves behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from runtime.records import Json, Record, ToolCall
from runtime.seams import digest
from runtime.types import AgentId, Judge, Observation, Played, Scenario, ScriptedPolicy, Team

Seats = Mapping[AgentId, ScriptedPolicy]
"""Who decides for each agent."""


class Table(Played, Protocol):
    """A run that goes on one decision at a time. ``envs.session.Session`` is one."""

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """The agents that decide now; none when the run is over."""
        ...

    @property
    def truncated(self) -> bool:
        """Cut by a limit, not ended by the team."""
        ...

    def observe(self, agent: AgentId) -> Observation:
        """What the agent has before it."""
        ...

    def act(self, agent: AgentId, action: int | ToolCall) -> Sequence[Record]:
        """Carry out one agent's decision."""
        ...

    def act_all(self, actions: Mapping[AgentId, int | ToolCall]) -> Sequence[Record]:
        """Carry out a simultaneous round."""
        ...

    def note(self, records: Sequence[Record]) -> None:
        """Add rewards to the records."""
        ...


class Opens(Protocol):
    """Opens tables; another team than the experiment's may be given, such as one with altered tools."""

    def __call__(self, scenario: Scenario, seed: int, team: Team | None = None) -> Table:
        """A fresh run of the team on the scenario, with a clock that depends on nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Move:
    """One decision."""

    seen: Observation
    """What the agent had before it: text, candidates, mask."""
    action: int | ToolCall
    step: int
    """The step it belongs to: in a simultaneous round several moves make one step."""

    @property
    def agent(self) -> AgentId:
        """Who decided."""
        return self.seen.agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """A run of a team that is over (``runtime.types.Played``). Nothing in it changes."""

    player: str
    seed: int
    scenario: Scenario
    records: list[Record]
    """What happened; what it was paid only if it was played ``paid``."""
    cuts: tuple[int, ...]
    """Where steps begin: the records of step t are ``records[cuts[t]:ends[t]]``, then its pay up to ``cuts[t + 1]``."""
    ends: tuple[int, ...]
    """Where what happened in a step ends, by step."""
    moves: tuple[Move, ...]
    truncated: bool
    outcome: Mapping[str, Json]
    success: bool
    ended: bool = True

    @property
    def steps(self) -> int:
        """Steps, which are judged one by one."""
        return len(self.ends)

    @property
    def name(self) -> str:
        """How findings call it."""
        return self.scenario.id


class Sitting:
    """A table with players: goes on one step at a time, so that several can be interleaved."""

    def __init__(self, table: Table, seats: Seats, player: str, seed: int, judge: Judge | None = None) -> None:
        self.table, self.player, self.seed = table, player, seed
        self._seats, self._judge = seats, judge
        self._cuts, self._ends, self._moves = [len(table.records)], list[int](), list[Move]()

    @property
    def over(self) -> bool:
        """Nobody is to act."""
        return not self.table.to_act

    @property
    def steps(self) -> int:
        """Steps taken."""
        return len(self._ends)

    def step(self) -> None:
        """Whoever is to act does; in a simultaneous round, everybody. With a judge, the step is paid as in training."""
        table, since = self.table, len(self.table.records)
        moves = [self._decided(table.observe(a)) for a in table.to_act]
        if len(moves) == 1:
            table.act(moves[0].agent, moves[0].action)
        else:
            table.act_all({m.agent: m.action for m in moves})
        self._moves += moves
        self._ends.append(len(table.records))
        if self._judge is not None:
            table.note(self._judge(table, since).records)
        self._cuts.append(len(table.records))

    def _decided(self, seen: Observation) -> Move:
        chance = Random(digest("audit", self.player, self.seed, *seen.key, seen.agent, seen.turn))
        return Move(seen, self._seats[seen.agent](seen, chance), len(self._ends))

    def episode(self) -> Episode:
        """What has been played."""
        table = self.table
        return Episode(
            player=self.player,
            seed=self.seed,
            scenario=table.scenario,
            records=list(table.records),
            cuts=tuple(self._cuts),
            ends=tuple(self._ends),
            moves=tuple(self._moves),
            truncated=table.truncated,
            outcome=table.outcome,
            success=table.success,
            ended=table.ended,
        )


def played(sitting: Sitting) -> Episode:
    """Play to the end."""
    while not sitting.over:
        sitting.step()
    return sitting.episode()


def seen_by(moves: Sequence[Move]) -> list[tuple[AgentId, str, tuple[bool, ...], tuple[Any, ...]]]:
    """All that an agent could tell apart, move by move: agent, text, mask, candidates in their order."""
    return [
        (m.agent, m.seen.text, m.seen.mask, tuple((c.tool, repr(c.args)) for c in m.seen.candidates)) for m in moves
    ]
