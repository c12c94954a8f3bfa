"""What each agent's rewards are expected to be: measured on play by chance, by rule, and asking everything."""

from collections import defaultdict
from collections.abc import Iterator

from rewards.audit.judging import Pay
from rewards.audit.material import Material
from rewards.audit.playing import Episode
from runtime.types import AgentId

EPISODES = 100
"""Of each player: the extremes of rarer rewards are for the slack to cover."""

Range = tuple[float, float]
"""Lowest and highest reward of a decision, in the terms' unit."""


def expected_rewards(material: Material, episodes: int = EPISODES) -> dict[AgentId, Range]:
    """Each agent's lowest and highest reward for a decision. Agents that were never paid are left out."""
    found: dict[AgentId, list[float]] = defaultdict(list[float])
    for agent, reward in _games(material, episodes) if material.team is None else _team(material, episodes):
        found[agent].append(reward)
    return {a: (min(r), max(r)) for a, r in found.items()}


def _team(material: Material, episodes: int) -> Iterator[tuple[AgentId, float]]:
    players = dict.fromkeys(p for p in ("random", "ask_everything", material.best) if p is not None)
    for player in players:
        for episode in material.episodes(player, episodes):
            yield from _paid(material, episode)


def _paid(material: Material, episode: Episode) -> Iterator[tuple[AgentId, float]]:
    shared = {w.term.name for w in material.mix.terms if w.term.scope == "team"}
    by_step: dict[int, list[Pay]] = defaultdict(list[Pay])
    for pay in material.pay(episode):
        by_step[pay.step].append(pay)
    for move in episode.moves:
        pays = [p for p in by_step[move.step] if p.term in shared or p.agent == move.agent]
        values = [p.value for p in pays if p.value is not None]
        if len(values) == len(pays):
            yield move.agent, sum(values)


def _games(material: Material, episodes: int) -> Iterator[tuple[AgentId, float]]:
    for player in ("random", "first_legal", "last_legal"):
        for game in material.games(player, episodes):
            for paid in game.rewards:
                yield from paid.items()
