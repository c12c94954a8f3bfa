"""Missing rewards: none is never a zero, and a run that lacks too many is stopped with the term's own reason."""

from collections.abc import Iterable, Mapping

from scipy.stats import binom

from runtime.errors import RepertoryError

CHANCE = 1e-6
"""A share above the limit counts while the run goes on once chance alone would show it this seldom."""


class MissingRewards(RepertoryError):
    """More episodes lack a reward than the file allows: how many, which term, and why."""


def surely(missing: int, episodes: int, limit: float) -> bool:
    """Whether so many of the episodes mean that more than the limit's share will be missing."""
    return missing > limit * episodes and float(binom.sf(missing - 1, episodes, limit)) < CHANCE


def told(missing: int, episodes: int, limit: float, why: Mapping[str, str]) -> str:
    """How many, and the reasons last seen."""
    share = f"{missing / max(1, episodes):.1%} of {episodes:,} episodes have a missing reward (limit {limit:.1%})"
    return "; ".join([share, *_reasons(why)])


def _reasons(why: Mapping[str, str]) -> Iterable[str]:
    return (f"term {name}: {reason}" for name, reason in sorted(why.items()))
