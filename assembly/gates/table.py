"""What gates play at: one episode that goes on step by step, of a team or of a PettingZoo environment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assembly.driving import Driven
from envs.session import Session
from policies.playing import Playable
from runtime.records import ModelCalled, Record
from runtime.seams import digest
from runtime.types import AgentId, Judge, Scenario, Team


class Table(Protocol):
    """An episode that has begun."""

    @property
    def over(self) -> bool:
        """Nobody is to act."""
        ...

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """Whose turn it is."""
        ...

    @property
    def rewards(self) -> Mapping[AgentId, Sequence[float]]:
        """What each decision was paid so far."""
        ...

    @property
    def took(self) -> Sequence[tuple[AgentId, float]]:
        """Each decision so far, and how long it took, ms."""
        ...

    def step(self) -> None:
        """Whoever is to act does."""
        ...

    def trace(self) -> Sequence[Any]:
        """All that happened, as values that are equal when the same happened; times left out."""
        ...


Opens = Callable[[int], Table]
"""Opens episode k on fresh things: the same number, the same episode."""


AT: dict[str, float] = {"at": 0.0}
MS = {**AT, "ms": 0.0}
"""What is left out of a record when two runs are compared: when it was, and how long a model took."""


class TeamTable(Driven):
    """A team's session."""

    def trace(self) -> Sequence[Record]:
        """The records, without their times."""
        return [r.model_copy(update=MS if isinstance(r, ModelCalled) else AT) for r in self.session.records]


@dataclass(frozen=True, slots=True)
class TeamTables:
    """Opens sessions of a team."""

    team: Team
    scenario: Callable[[int], Scenario]
    seats: Mapping[AgentId, Playable]
    judge: Judge
    seed: int

    def __call__(self, episode: int) -> TeamTable:
        """A fresh session on the episode's scenario, under a correlation id of its own."""
        case = self.scenario(episode)
        named = f"{digest('gate', self.team.name, case.id, self.seed, episode):016x}"
        return TeamTable(Session(self.team, case, seed=self.seed, correlation_id=named), self.seats, self.judge)
