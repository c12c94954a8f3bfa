"""What a runner counts, under RLlib's own keys, logged once a call and not once a step."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ray.rllib.utils.metrics import (
    EPISODE_AGENT_RETURN_MEAN,
    EPISODE_AGENT_STEPS,
    EPISODE_DURATION_SEC_MEAN,
    EPISODE_LEN_MAX,
    EPISODE_LEN_MEAN,
    EPISODE_LEN_MIN,
    EPISODE_MODULE_RETURN_MEAN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
    NUM_AGENT_STEPS_SAMPLED,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    NUM_EPISODES_LIFETIME,
    NUM_MODULE_STEPS_SAMPLED,
    NUM_MODULE_STEPS_SAMPLED_LIFETIME,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from runtime.types import AgentId
from trainers.rllib.fragment import ModuleID

MISSING_REWARDS = "missing_rewards"
"""Rewards that were NaN in this call: nobody learned from the episode's decisions around them."""
DROPPED_EPISODES = "dropped_episodes"
"""Episodes with a missing reward: their return is unknown and in no mean."""
DROPPED_STEPS = "dropped_agent_steps"
"""Decisions that were taken out of the batch for it."""
TEAM_RETURN_MEAN = "team_return_mean"
"""Mean of what the environment calls the team's return; ``episode_return_mean`` adds up the agents' returns."""


@dataclass(frozen=True, slots=True)
class Finished:
    """One episode that ended with all its rewards known."""

    length: int
    """Env steps."""
    returns: Mapping[AgentId, float]
    turns: Mapping[AgentId, int]
    seconds: float
    team_return: float | None


@dataclass(slots=True)
class Tally:
    """Counts of one ``sample()`` call."""

    steps: int = 0
    """Env steps."""
    opened: int = 0
    episodes: int = 0
    """Episodes that ended."""
    turns: Counter[AgentId] = field(default_factory=Counter)
    missing: int = 0
    dropped_episodes: int = 0
    dropped_turns: int = 0
    finished: list[Finished] = field(default_factory=list)


def log_counts(metrics: MetricsLogger, tally: Tally, mapping: Mapping[AgentId, ModuleID]) -> None:
    """Log what one call sampled."""
    log = metrics.log_value
    log(NUM_ENV_STEPS_SAMPLED, tally.steps, reduce="sum")
    log(NUM_ENV_STEPS_SAMPLED_LIFETIME, tally.steps, reduce="lifetime_sum", with_throughput=True)
    log(NUM_EPISODES, tally.episodes, reduce="sum")
    log(NUM_EPISODES_LIFETIME, tally.episodes, reduce="lifetime_sum")
    log(MISSING_REWARDS, tally.missing, reduce="sum")
    log(DROPPED_EPISODES, tally.dropped_episodes, reduce="sum")
    log(DROPPED_STEPS, tally.dropped_turns, reduce="sum")
    modules: Counter[ModuleID] = Counter()
    for agent, turns in tally.turns.items():
        modules[mapping[agent]] += turns
    for key, lifetime, counts in (
        (NUM_AGENT_STEPS_SAMPLED, NUM_AGENT_STEPS_SAMPLED_LIFETIME, tally.turns),
        (NUM_MODULE_STEPS_SAMPLED, NUM_MODULE_STEPS_SAMPLED_LIFETIME, modules),
    ):
        for name, count in counts.items():
            log((key, name), count, reduce="sum")
            log((lifetime, name), count, reduce="lifetime_sum")


def log_episodes(metrics: MetricsLogger, finished: list[Finished], mapping: Mapping[AgentId, ModuleID]) -> None:
    """Log means over the episodes that ended since the last time. Returns are in the rewards' unit."""
    if not finished:
        return
    lengths = [f.length for f in finished]
    returns = [sum(f.returns.values()) for f in finished]
    means: dict[str, Any] = {
        EPISODE_LEN_MEAN: np.mean(lengths),
        EPISODE_RETURN_MEAN: np.mean(returns),
        EPISODE_DURATION_SEC_MEAN: np.mean([f.seconds for f in finished]),
        EPISODE_AGENT_RETURN_MEAN: _means({a: f.returns.get(a, 0.0) for a in f.turns} for f in finished),
        EPISODE_AGENT_STEPS: _means(f.turns for f in finished),
        EPISODE_MODULE_RETURN_MEAN: _means(_by_module(f, mapping) for f in finished),
    }
    teams = [f.team_return for f in finished if f.team_return is not None]
    if teams:
        means[TEAM_RETURN_MEAN] = np.mean(teams)
    metrics.log_dict(means, window=1)
    metrics.log_dict({EPISODE_LEN_MIN: min(lengths), EPISODE_RETURN_MIN: min(returns)}, reduce="min", window=1)
    metrics.log_dict({EPISODE_LEN_MAX: max(lengths), EPISODE_RETURN_MAX: max(returns)}, reduce="max", window=1)


def _means(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name over the mappings that have it."""
    values: dict[str, list[float]] = defaultdict(list)
    for mapping in figures:
        for name, value in mapping.items():
            values[name].append(value)
    return {name: float(np.mean(v)) for name, v in values.items()}


def _by_module(episode: Finished, mapping: Mapping[AgentId, ModuleID]) -> dict[ModuleID, float]:
    """The returns of an episode, added up over each module's agents."""
    total: dict[ModuleID, float] = defaultdict(float)
    for agent in episode.turns:
        total[mapping[agent]] += episode.returns.get(agent, 0.0)
    return total
