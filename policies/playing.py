"""Policies as they are played, wherever a team runs: turns in, choices out."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policies.choice import choose, log_probabilities
from policies.featurize import Arrays
from runtime.llm.types import Spent
from runtime.records import ToolCall
from runtime.seams import digest, uniform
from runtime.types import AgentId, Observation, ScriptedPolicy

if TYPE_CHECKING:
    from policies.encoder import Actor

Featurize = Callable[[Sequence[Any]], Arrays]


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent about to decide."""

    agent: AgentId
    seen: Any
    """The environment's observation."""
    key: tuple[Any, ...]
    """(seed, scenario): with agent and turn, what chance is drawn from."""
    turn: int
    observation: Callable[[], Observation] | None = None
    """The same as a team's observation, for policies that read it by rule."""

    @property
    def chance(self) -> float:
        """The number in [0, 1) that this decision is drawn with."""
        return uniform(*self.key, self.agent, self.turn)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided."""

    action: Any
    """A candidate's index, a call, or an action of the environment's space."""
    logp: float | None = None
    probabilities: tuple[float, ...] | None = None
    spent: Spent | None = None
    """What a model that was asked for it took."""


class Playable(Protocol):
    """Anything that can take a seat in a team."""

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A choice a turn. ``greedy``: the likeliest candidate, in place of a drawn one."""
        ...


class EncoderPolicy:
    """A trained encoder policy with frozen weights."""

    def __init__(
        self, actor: "Actor", featurize: Featurize, to_action: Callable[[NDArray[Any]], Any] | None = None
    ) -> None:
        self.actor = actor.eval()
        self.featurize = featurize
        self._to_action = to_action
        """From the network's outputs to an action, where actions are not a single choice."""

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A choice a turn, by one forward pass."""
        import torch

        arrays = self.featurize([t.seen for t in turns])
        legal = torch.from_numpy(arrays["action_mask"]) if "action_mask" in arrays else None
        with torch.no_grad():
            outputs: NDArray[np.float32] = self.actor(torch.from_numpy(arrays["features"]), legal).numpy()
        if self._to_action is not None:
            return [Choice(self._to_action(row)) for row in outputs]
        logp = log_probabilities(outputs)
        picked = outputs.argmax(1) if greedy else choose(outputs, np.array([t.chance for t in turns]))
        return [
            Choice(int(a), float(row[a]), tuple(np.exp(row).round(6).tolist()))
            for a, row in zip(picked, logp, strict=True)
        ]


class RulePolicy:
    """A scripted policy: its chance is drawn from the same key as any other decision's."""

    def __init__(self, rule: ScriptedPolicy) -> None:
        self.rule = rule

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """What the rule says, turn by turn."""
        return [self._one(t) for t in turns]

    def _one(self, turn: Turn) -> Choice:
        if turn.observation is None:
            raise TypeError("a scripted policy needs a team's observations; a PettingZoo environment has none")
        rng = random.Random(digest("rule", *turn.key, turn.agent, turn.turn))
        said = self.rule(turn.observation(), rng)
        return Choice(said if isinstance(said, ToolCall) else int(said))


class RandomPolicy:
    """Uniform over the legal candidates, or over the environment's action space."""

    def __init__(self, sample: Callable[[int], Any] | None = None) -> None:
        self._sample = sample

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A legal choice a turn, drawn from its key."""
        return [self._one(t) for t in turns]

    def _one(self, turn: Turn) -> Choice:
        mask = turn.seen.get("action_mask") if isinstance(turn.seen, dict) else None
        if mask is None:
            if self._sample is None:
                raise TypeError("a random policy needs an action mask or a space to sample from")
            return Choice(self._sample(digest("random", *turn.key, turn.agent, turn.turn) % 2**31))
        legal = np.flatnonzero(np.asarray(mask))
        return Choice(int(legal[int(turn.chance * len(legal))]), float(-np.log(len(legal))))
