"""What each agent's rewards are expected to be: measured on play by chance, by rule, and asking everything."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rewards.audit.games import GAME_PLAYERS, GameMove
from rewards.audit.material import Material
from rewards.audit.playing import Move
from runtime.types import AgentId

EPISODES = 100
"""Of each player: the extremes of rarer rewards are for the slack to cover."""

Range = tuple[float, float]
"""Lowest and highest reward of a decision, all that is paid until the agent's next one, in the terms' unit."""


def expected_rewards(material: Material, episodes: int = EPISODES) -> dict[AgentId, Range]:
    """Each agent's lowest and highest reward for a decision. Agents that were never paid are left out."""
    found: dict[AgentId, list[float]] = defaultdict(list[float])
    for agent, reward in _games(material, episodes) if material.team is None else _team(material, episodes):
        found[agent].append(reward)
    return {a: (min(r), max(r)) for a, r in found.items()}


def _team(material: Material, episodes: int) -> Iterator[tuple[AgentId, float]]:
    shared = {w.term.name for w in material.mix.terms if w.term.scope == "team"}
    players = dict.fromkeys(p for p in ("random", "ask_everything", material.best) if p is not None)
    for player in players:
        for episode in material.episodes(player, episodes):
            pays = material.pay(episode)
            for agent, steps in _turns(episode.moves).items():
                mine = [p for p in pays if p.term in shared or p.agent == agent]
                yield from _credited(agent, steps, ((p.step, math.nan if p.value is None else p.value) for p in mine))


def _games(material: Material, episodes: int) -> Iterator[tuple[AgentId, float]]:
    for player in GAME_PLAYERS:
        for game in material.games(player, episodes):
            for agent, steps in _turns(game.moves).items():
                paid = ((step, each[agent]) for step, each in enumerate(game.rewards) if agent in each)
                yield from _credited(agent, steps, paid)


def _turns(moves: Iterable[Move] | Iterable[GameMove]) -> dict[AgentId, list[int]]:
    turns: dict[AgentId, list[int]] = defaultdict(list[int])
    for move in moves:
        turns[move.agent].append(move.step)
    return turns


def _credited(
    agent: AgentId, steps: Sequence[int], paid: Iterable[tuple[int, float]]
) -> Iterator[tuple[AgentId, float]]:
    """Each of an agent's decisions with all that it was paid until its next one, as in training."""
    decisions = [0.0] * len(steps)
    for step, value in paid:
        place = bisect_right(steps, step) - 1
        if place >= 0:
            decisions[place] += value
    yield from ((agent, value) for value in decisions if math.isfinite(value))
