"""The team as it is before training, for the gates: untrained policies, every seat taken."""

import copy
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assembly.build import Build
from assembly.gates.ranges import expected_rewards
from assembly.gates.table import Opens, TeamTables
from assembly.gates.trying import Rehearsal
from policies.playing import Choice, Playable
from rewards.audit.material import Material
from runtime.types import AgentId
from trainers.play import advance, begin
from trainers.prepare import Prepared
from trainers.rllib.algorithm import make_adapter
from trainers.rllib.algorithm import seats as seats_of


def untrained(build: Build, prepared: Prepared) -> dict[AgentId, Playable]:
    """Every learning agent's policy with fresh weights."""
    made: dict[str, Playable] = {
        name: seat.policy(seat.actor()) for name, seat in seats_of(build, prepared.featurizers).items()
    }
    return {a: made[build.policy_of[a]] for a in build.learners}


def rehearsal(build: Build, prepared: Prepared, material: Material) -> Rehearsal:
    """What the gates try."""
    seats = untrained(build, prepared)
    policies = build.experiment.policies
    if build.team is None:
        kinds = {a: policies[build.policy_of[a]].kind for a in build.learners}
        opens: Opens = GameTables(build, seats)
    else:
        kinds = {a: policies[build.policy_of[a]].kind for a in build.agents}
        everybody = seats | build.teammates
        opens = TeamTables(build.team, build.source("train"), everybody, build.judge, build.experiment.seed)
    return Rehearsal(team=build.team, kinds=kinds, opens=opens, expected=expected_rewards(material))


@dataclass(frozen=True, slots=True)
class GameTables:
    """Opens episodes of a PettingZoo environment, each on an environment of its own."""

    build: Build
    seats: Mapping[AgentId, Playable]

    def __call__(self, episode: int) -> "GameTable":
        """A fresh environment on the episode's seed."""
        return GameTable(self.build, self.seats, episode)


class GameTable:
    """A PettingZoo environment's episode, step by step."""

    def __init__(self, build: Build, seats: Mapping[AgentId, Playable], episode: int) -> None:
        self._table = begin(make_adapter(build, "train"), episode, build.experiment.seed)
        self._seats = seats
        self._trace: list[Any] = []
        self._order: list[AgentId] = []
        self.over = not self._table.observations
        self.took: list[tuple[AgentId, float]] = []

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """Whose turn it is."""
        return tuple(self._table.observations)

    @property
    def rewards(self) -> Mapping[AgentId, Sequence[float]]:
        """What each decision was paid so far."""
        return self._table.rewards

    def step(self) -> None:
        """Whoever is to act does."""
        choices: dict[AgentId, Choice] = {}
        chosen: dict[AgentId, float] = {}
        for turn in self._table.turns():
            self._trace.append((turn.agent, copy.deepcopy(turn.seen)))
            began = time.perf_counter()
            (choices[turn.agent],) = self._seats[turn.agent].decide([turn], greedy=False)
            chosen[turn.agent] = time.perf_counter() - began
        began = time.perf_counter()
        self.over = advance(self._table, choices) is not None
        acted = time.perf_counter() - began
        self.took += [(a, 1000 * (ms + acted)) for a, ms in chosen.items()]

    def trace(self) -> Sequence[Any]:
        """Everything that was seen, and the rewards."""
        paid: dict[AgentId, list[float]] = defaultdict(list[float], self._table.rewards)
        with np.printoptions(threshold=10**6, precision=9):
            return [repr(each) for each in (*self._trace, dict(paid))]
