"""Runs of a PettingZoo environment for the audit: arrays in place of texts, the environment's own rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runtime.records import Json
from runtime.seams import digest
from runtime.types import AgentId

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sight:
    """What an agent has before it."""

    agent: AgentId
    array: Floats
    """The observation, flat: its mask is kept apart."""
    mask: tuple[bool, ...] | None = None
    """Legal actions; None where all are, or where actions are not counted."""


class GameTable(Protocol):
    """An environment that goes on one step at a time, opened on a seed."""

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """The agents that move now; none when it is over."""
        ...

    @property
    def truncated(self) -> bool:
        """Cut by a limit."""
        ...

    @property
    def success(self) -> bool | None:
        """What the environment says in ``info["success"]`` at the end; None if it says nothing."""
        ...

    @property
    def truth(self) -> Mapping[str, Json]:
        """What the environment names as hidden, in ``info["truth"]`` at its reset; mostly nothing."""
        ...

    def observe(self, agent: AgentId) -> Sight:
        """What the agent sees."""
        ...

    def sample(self, agent: AgentId, chance: int) -> Any:
        """An action from the agent's space, within its mask."""
        ...

    def act(self, actions: Mapping[AgentId, Any]) -> Mapping[AgentId, float]:
        """Move, and return what everybody was paid for it."""
        ...


class OpensGame(Protocol):
    """Opens an environment on a seed."""

    def __call__(self, seed: int) -> GameTable:
        """A fresh run."""
        ...


GamePlayer = str
"""``random``, ``first_legal``, ``last_legal``: what any environment can be played by. Where all actions are legal, the
last two stand for two fixed actions."""
GAME_PLAYERS: tuple[GamePlayer, ...] = ("random", "first_legal", "last_legal")


@dataclass(frozen=True, slots=True)
class GameMove:
    """One decision."""

    seen: Sight
    action: Any
    step: int

    @property
    def agent(self) -> AgentId:
        """Who moved."""
        return self.seen.agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Game:
    """A run of an environment that is over."""

    player: GamePlayer
    seed: int
    moves: tuple[GameMove, ...]
    rewards: tuple[Mapping[AgentId, float], ...]
    """What each step paid to whom."""
    truncated: bool
    success: bool | None
    truth: Mapping[str, Json] = field(default_factory=dict[str, Json])
    last: Mapping[AgentId, Sight] = field(default_factory=dict[AgentId, Sight])
    """What each agent saw at the end."""

    @property
    def steps(self) -> int:
        """Steps, which are paid one by one."""
        return len(self.rewards)

    @property
    def name(self) -> str:
        """How findings call it."""
        return f"seed {self.seed}"

    def returns(self) -> dict[AgentId, float]:
        """Each agent's sum of rewards."""
        agents = dict.fromkeys(a for paid in self.rewards for a in paid)
        return {a: float(sum(paid.get(a, 0.0) for paid in self.rewards)) for a in agents}


class GameSitting:
    """A game with players: goes on one step at a time, so that several can be interleaved.

    Args:
        script: actions to take at the first steps, before the player decides.
    """

    def __init__(
        self, table: GameTable, player: GamePlayer, seed: int, script: Sequence[Mapping[AgentId, Any]] = ()
    ) -> None:
        self.table, self.player, self.seed, self._script = table, player, seed, script
        self._moves, self._rewards = list[GameMove](), list[Mapping[AgentId, float]]()
        self._last: dict[AgentId, Sight] = {}

    @property
    def over(self) -> bool:
        """Nobody is to act."""
        return not self.table.to_act

    def step(self) -> None:
        """Whoever is to act does."""
        place = len(self._rewards)
        moves = [GameMove(s, self._action(s, place), place) for s in map(self.table.observe, self.table.to_act)]
        self._last |= {m.agent: m.seen for m in moves}
        self._moves += moves
        self._rewards.append(dict(self.table.act({m.agent: m.action for m in moves})))

    def _action(self, seen: Sight, place: int) -> Any:
        if place < len(self._script) and seen.agent in self._script[place]:
            return self._script[place][seen.agent]
        if self.player != "random":
            if seen.mask is None:
                return self.table.sample(seen.agent, digest("audit", self.player, seen.agent) % 2**31)
            found = [i for i, ok in enumerate(seen.mask) if ok]
            return found[0] if self.player == "first_legal" else found[-1]
        return self.table.sample(seen.agent, digest("audit", self.player, self.seed, seen.agent, place) % 2**31)

    def game(self) -> Game:
        """What has been played."""
        return Game(
            player=self.player,
            seed=self.seed,
            moves=tuple(self._moves),
            rewards=tuple(self._rewards),
            truncated=self.table.truncated,
            success=self.table.success,
            truth=self.table.truth,
            last=self._last,
        )


def played_game(sitting: GameSitting, limit: int = 2_000) -> Game:
    """Play to the end, or until the limit of steps, which an environment without an end of its own would pass."""
    while not sitting.over and limit > 0:
        sitting.step()
        limit -= 1
    return sitting.game()
