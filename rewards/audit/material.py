"""What checks read: a team or an environment that can be played, its scenarios, its reward terms, and budgets."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rewards.audit.games import Game, GameSitting, OpensGame, played_game
from rewards.audit.judging import Pay, in_training
from rewards.audit.players import GOLD, following, gold_calls, players_of
from rewards.audit.playing import Episode, Opens, Seats, Sitting, played
from rewards.mix import Mix
from runtime.types import AgentId, Scenario, Team

ScenarioSource = Callable[[int], Scenario]
"""Scenario k of a split."""
Snapshot = Callable[[], Any]
"""Returns statistics as plain values that can be compared."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is played. Everything is counted in episodes, so that an audit is the same on any machine."""

    episodes: int = 100
    """Of each player, for figures."""
    examples: int = 12
    """Of each player, where one example proves the fault."""
    openings: int = 300
    """First observations to learn from."""


USUAL = Effort()


@dataclass(frozen=True, slots=True)
class Evaluating:
    """An evaluation that can be watched."""

    statistics: Mapping[str, Snapshot]
    """What must not change, by name, such as ``standardizer``."""
    evaluate: Callable[[], Any]
    """Plays a few held-out episodes the way the run will."""


@dataclass(kw_only=True)
class Material:
    """All that a check may look at. A team has ``team``, ``open`` and ``sources``; an environment ``open_game``."""

    name: str
    agents: tuple[AgentId, ...]
    mix: Mix
    seed: int = 0
    team: Team | None = None
    open: Opens | None = None
    sources: Mapping[str, ScenarioSource] = field(default_factory=dict[str, ScenarioSource])
    """By split: ``train``, ``eval``."""
    counts: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """How many different scenarios each split has; None is no end."""
    listed: frozenset[str] = frozenset()
    """Splits whose scenarios come from a file, and are not drawn."""
    open_game: OpensGame | None = None
    evaluating: Evaluating | None = None
    effort: Effort = USUAL
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What own checks, labels and training hand over, by name."""
    _episodes: dict[tuple[str, str, int], Episode] = field(default_factory=dict[tuple[str, str, int], Episode])
    _games: dict[tuple[str, int], Game] = field(default_factory=dict[tuple[str, int], Game])
    _pay: dict[int, tuple[Episode, list[Pay]]] = field(default_factory=dict[int, tuple[Episode, list[Pay]]])

    def has(self, need: str) -> bool:
        """Whether a need is met: ``team``, ``game``, ``terms``, ``evaluating``, a split, or a key of ``own``."""
        known = {
            "team": self.team is not None and self.open is not None,
            "game": self.open_game is not None,
            "terms": bool(self.mix.terms),
            "evaluating": self.evaluating is not None,
        }
        return known.get(need, need in self.sources or need in self.own)

    # -- a team

    @property
    def the_team(self) -> Team:
        """The team; a check that needs ``team`` has it."""
        assert self.team is not None
        return self.team

    @property
    def opens(self) -> Opens:
        """Opens tables; a check that needs ``team`` has it."""
        assert self.open is not None
        return self.open

    @cached_property
    def players(self) -> dict[str, Seats]:
        """Ways to play the team by name: ``random``, ``empty``, ``always TOOL``, its baselines, … (see ``players``)."""
        return players_of(self.the_team) if self.team else {}

    @cached_property
    def gold(self) -> str | None:
        """The player that earns the most there is, if the team or its scenarios name one."""
        named = next((n for n in GOLD if n in self.players), None)
        if named is None and self.team and "train" in self.sources and gold_calls(self.scenario(0)):
            return "gold"
        return named

    @cached_property
    def best(self) -> str | None:
        """``gold``, or else the playable baseline with the highest mean return in a few episodes."""
        baselines = [n for n, b in self.the_team.baselines.items() if b.policies] if self.team else []
        if self.gold or not baselines or not self.mix.terms:
            return self.gold or next(iter(baselines), None)
        return max(baselines, key=lambda n: sum(p.value or 0.0 for e in self.episodes(n, 10) for p in self.pay(e)))

    def scenario(self, index: int, split: str = "train") -> Scenario:
        """Scenario of that index."""
        return self.sources[split](index)

    def scenarios(self, count: int, split: str = "train", start: int = 0) -> Iterator[Scenario]:
        """Different scenarios, as many as there are up to ``count``."""
        end = self.counts.get(split)
        for index in range(start, start + count if end is None else min(start + count, end)):
            yield self.scenario(index, split)

    def seats(self, player: str, scenario: Scenario) -> Seats:
        """Who decides for each agent."""
        calls = gold_calls(scenario) if player == "gold" and "gold" not in self.players else None
        return dict.fromkeys(self.agents, following(calls)) if calls else self.players[player]

    def sit(self, player: str, scenario: Scenario, *, team: Team | None = None, paid: bool = False) -> Sitting:
        """A table with that player, opened on the scenario; ``paid``: rewards are on record, as in training."""
        table = self.opens(scenario, self.seed, team)
        return Sitting(table, self.seats(player, scenario), player, self.seed, self.mix if paid else None)

    def play(self, player: str, scenario: Scenario, team: Team | None = None) -> Episode:
        """A whole episode, never cached: for scenarios or teams that a check has altered."""
        return played(self.sit(player, scenario, team=team))

    def episodes(self, player: str, count: int, split: str = "train", start: int = 0) -> list[Episode]:
        """Episodes of a player on the first different scenarios of a split (from ``start`` on), each played once."""
        end = self.counts.get(split)
        found: list[Episode] = []
        for index in range(start, start + count if end is None else min(start + count, end)):
            key = (player, split, index)
            if key not in self._episodes:
                self._episodes[key] = self.play(player, self.scenario(index, split))
            found.append(self._episodes[key])
        return found

    def pay(self, episode: Episode) -> list[Pay]:
        """What every term paid at every step, judged once, the way training does."""
        if id(episode) not in self._pay:
            self._pay[id(episode)] = (episode, in_training(self.mix, episode))
        return self._pay[id(episode)][1]

    # -- a PettingZoo environment

    @property
    def opens_game(self) -> OpensGame:
        """Opens environments; a check that needs ``game`` has it."""
        assert self.open_game is not None
        return self.open_game

    def games(self, player: str, count: int, start: int = 0) -> list[Game]:
        """Games of a player on seeds of the audit's own, each played once."""
        for seed in range(start, start + count):
            if (player, seed) not in self._games:
                self._games[player, seed] = self.play_game(player, seed)
        return [self._games[player, seed] for seed in range(start, start + count)]

    def play_game(self, player: str, seed: int) -> Game:
        """A whole game, never cached."""
        return played_game(GameSitting(self.opens_game(seed), player, seed))
