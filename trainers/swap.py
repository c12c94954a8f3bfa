"""The role-swap test: how much of what a team learned belongs to the seats, and is lost when two exchange policies."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from assembly.build import Build
from policies.lm.playing import LMPolicy
from policies.playing import Choice, EncoderPolicy, Playable, Turn
from runtime.types import AgentId
from trainers.evaluate import Purse, Tried, try_out

Exchangeable = EncoderPolicy | LMPolicy
"""Policies that score candidates, so that another seat's can take their place."""


class Misplaced:
    """A policy in another role's seat: it scores its own candidates, and those of the seat take the scores in order.

    Where the seat has more candidates than the policy knows, the further ones are never chosen, unless nothing else is
    legal: then the first legal one is.
    """

    def __init__(self, policy: Playable, candidates: int) -> None:
        self.policy, self.candidates = policy, candidates

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A choice a turn."""
        masks = [np.asarray(t.seen["action_mask"]) for t in turns]
        fits = [self._fitted(m) for m in masks]
        told = [_with_mask(t, f if f.any() else np.ones_like(f)) for t, f in zip(turns, fits, strict=True)]
        chosen = self.policy.decide(told, greedy)
        return [
            c if f.any() else Choice(int(np.flatnonzero(m)[0])) for c, f, m in zip(chosen, fits, masks, strict=True)
        ]

    def _fitted(self, mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.pad(mask[: self.candidates], (0, max(0, self.candidates - len(mask))))


def _with_mask(turn: Turn, mask: np.ndarray[Any, Any]) -> Turn:
    return Turn(turn.agent, {**turn.seen, "action_mask": mask}, turn.key, turn.turn, turn.observation)


def swaps(
    build: Build, seats: Mapping[AgentId, Playable], sizes: Mapping[str, int], episodes: Iterable[int], purse: Purse
) -> dict[str, Tried]:
    """Held-out play with each pair of learning roles' policies exchanged, by ``"A<->B"``.

    Args:
        build: the experiment.
        seats: the trained policies.
        sizes: candidates that each policy scores, by policy name.
        episodes: which held-out episodes.
        purse: what may be spent.
    """
    listed = list(episodes)
    found: dict[str, Tried] = {}
    for a, b in combinations(build.learners, 2):
        mine, theirs = seats[a], seats[b]
        if mine is not theirs and isinstance(mine, Exchangeable) and isinstance(theirs, Exchangeable):
            exchanged = {
                **seats,
                a: Misplaced(theirs, sizes[build.policy_of[b]]),
                b: Misplaced(mine, sizes[build.policy_of[a]]),
            }
            found[f"{a}<->{b}"] = tried = try_out(build, exchanged, listed, purse.empty)
            purse.pay(tried)
    return found
