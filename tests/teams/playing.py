"""Playing a team by rule, for the tests of the teams."""

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from envs.scenarios import Generated
from envs.session import Session
from rewards.mix import Mix, Weighted
from rewards.terms import TERMS
from runtime.types import Observation, ScriptedPolicy, Team


def uniform_choice(seen: Observation, chance: Random) -> int:
    return chance.choice([i for i, legal in enumerate(seen.mask) if legal])


def play(session: Session, policies: Mapping[str, ScriptedPolicy] | None, judge: Mix | None = None) -> float:
    """Play to the end and return the team's return."""
    total, chance = 0.0, Random(session.scenario.id)
    while not session.ended:
        agent = session.to_act[0]
        since = len(session.records)
        session.act(agent, (policies[agent] if policies else uniform_choice)(session.observe(agent), chance))
        if judge is not None:
            total += judge(session, since).team
    return total


def returns(
    team: Team, policies: Mapping[str, ScriptedPolicy] | None, weights: Mapping[str, float], count: int
) -> np.ndarray:
    """The team's return on each of the first held-out scenarios."""
    judge = Mix([Weighted({**TERMS, **team.terms}[name], weight) for name, weight in weights.items()])
    source = Generated(team, "eval", 2)
    return np.array([play(Session(team, source(k)), policies, judge) for k in range(count)])


def interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """A 95% interval of the mean, by the normal approximation."""
    mean, half = float(np.mean(values)), 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return mean - half, mean + half
