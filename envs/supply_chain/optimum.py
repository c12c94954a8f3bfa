"""What a team can earn at best in a world file, exactly: dynamic programming over the sets of findings seen.

Findings are independent given the cause, each tool always answers the same, and notes lose nothing. So all that
matters of a case's past is which tool found what, and whose turn it is: a state. Weights are the joint probabilities of
a state's findings and each cause; values are USD times the state's probability, so they simply add up.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.supply_chain.world_file import WorldFile
from runtime.errors import TeamError

Floats = NDArray[np.float64]

MAX_STATES = 4_000_000
"""Sets of findings that fit: about 1 GB with ten causes."""


class Plan:
    """The best play of a world file.

    A state is indexed by one axis a tool, in the order of the tools' owners: position i is the tool's i-th finding,
    the last position "not asked".
    """

    def __init__(self, file: WorldFile) -> None:
        self.file = file
        self.tools = tuple(t for a in file.agents for t in file.owned(a))
        if not solvable(file):
            raise TeamError(f"world {file.name}: its tools' findings are too many to compute its optimum")
        weights = self._weights()
        self._mass = weights.sum(-1)
        self._last = np.full(self._mass.shape, -np.inf)
        """Value of the best remedy."""
        for payoff_c in file.payoff_rc:
            np.maximum(self._last, weights @ payoff_c, out=self._last)
        self._hand: dict[str, Floats] = {}
        self._best: dict[str, Floats] = {}
        self.value = self._solve()
        """Expected return of the best play (USD)."""

    def _weights(self) -> Floats:
        """``(states…, causes)`` joint probability of findings and cause."""
        joint = weigh(self.file, {})
        for name in self.tools:
            chance_fc = np.array([self.file.tools[name].likelihood[c] for c in self.file.causes]).T
            option_fc = np.vstack([chance_fc, np.ones(len(self.file.causes))])
            joint = joint[..., None, :] * option_fc
        return joint

    def _solve(self) -> float:
        value, mass = self._last, self._mass
        for agent in reversed(self.file.agents[:-1]):
            own = len(self.file.owned(agent))
            self._hand[agent] = value - self.file.handoff_cost * mass
            self._best[agent] = self._asked_well(self._hand[agent], mass, self.file.owned(agent))
            unasked = (..., *(-1 for _ in range(own)))
            value, mass = self._best[agent][unasked], mass[unasked]
        return float(value)

    def _asked_well(self, hand: Floats, mass: Floats, own: Sequence[str]) -> Floats:
        """``hand`` where passing the case on is best, else the value of the best tool to ask first."""
        best = hand.copy()
        first = hand.ndim - len(own)
        axes = range(first, hand.ndim)
        for count in reversed(range(len(own))):
            for asked in combinations(axes, count):
                here = tuple(slice(-1, None) if a in axes and a not in asked else slice(None) for a in range(hand.ndim))
                here = tuple(slice(0, -1) if a in asked else s for a, s in enumerate(here))
                for axis in (a for a in axes if a not in asked):
                    after = best[_with(here, axis, slice(0, -1))].sum(axis=axis, keepdims=True)
                    price = self.file.tools[own[axis - first]].cost * mass[here]
                    np.maximum(best[here], after - price, out=best[here])
        return best

    def _state(self, seen: Mapping[str, str], tools: Sequence[str]) -> tuple[int, ...]:
        findings = (self.file.tools[t].findings for t in tools)
        return tuple(f.index(seen[t]) if t in seen else -1 for t, f in zip(tools, findings, strict=True))

    def ask(self, agent: str, seen: Mapping[str, str]) -> str | None:
        """The tool that the agent should ask next, having seen those findings by tool; None: hand the case over."""
        place = self.file.agents.index(agent)
        tools = tuple(t for a in self.file.agents[: place + 1] for t in self.file.owned(a))
        state, best = self._state(seen, tools), self._best[agent]
        choice, worth = None, float(self._hand[agent][state])
        mass = float(self._mass[(*state, *(-1 for _ in range(len(self.tools) - len(tools))))])
        for axis, name in enumerate(tools):
            if name in self.file.owned(agent) and name not in seen:
                value = float(best[_with(state, axis, slice(0, -1))].sum()) - self.file.tools[name].cost * mass
                if value > worth + 1e-12:
                    choice, worth = name, value
        return choice

    @property
    def ask_everything(self) -> float:
        """Expected return of asking every tool, then choosing the best remedy (USD)."""
        everything = tuple(slice(0, -1) for _ in self.tools)
        return float(self._last[everything].sum()) - spent_on_everything(self.file)


def _with(index: tuple[Any, ...], axis: int, value: Any) -> tuple[Any, ...]:
    return (*index[:axis], value, *index[axis + 1 :])


def _hand_overs(file: WorldFile) -> float:
    """What passing a case through all agents costs (USD)."""
    return file.handoff_cost * (len(file.agents) - 1)


def solvable(file: WorldFile) -> bool:
    """Whether the world is small enough for its optimum to be computed."""
    return prod(len(t.findings) + 1 for t in file.tools.values()) <= MAX_STATES


def spent_on_everything(file: WorldFile) -> float:
    """What asking every tool and passing the case through all agents costs (USD)."""
    return sum(t.cost for t in file.tools.values()) + _hand_overs(file)


def weigh(file: WorldFile, seen: Mapping[str, str]) -> Floats:
    """``(causes,)`` joint probability of each cause and the findings seen, by tool."""
    weights = np.array([file.prior[c] for c in file.causes])
    for name, finding in seen.items():
        place = file.tools[name].findings.index(finding)
        weights = weights * [file.tools[name].likelihood[c][place] for c in file.causes]
    return weights


def best_remedy(file: WorldFile, seen: Mapping[str, str]) -> str:
    """The remedy that pays most, given those findings by tool."""
    return file.remedies[int((file.payoff_rc @ weigh(file, seen)).argmax())]


def plan_for(file: WorldFile) -> Plan:
    """The world's plan; computed once for equal files."""
    return _plan(file.model_dump_json())


@lru_cache(maxsize=8)
def _plan(text: str) -> Plan:
    return Plan(WorldFile.model_validate_json(text))


def ask_nothing(file: WorldFile) -> float:
    """Expected return of handing over at once and choosing the best remedy blindly (USD)."""
    return _mean_payoff(file, best_remedy(file, {})) - _hand_overs(file)


def random_play(file: WorldFile, passes: int = 1) -> float:
    """Expected return of choosing uniformly among the legal calls (USD).

    Args:
        file: the world.
        passes: hand-over calls that a role can choose from: one, or one a suspicion.
    """
    costs = 0.0
    for agent in file.agents[:-1]:
        own = file.owned(agent)
        asked, goes_on = 0.0, 1.0
        for left in range(len(own), 0, -1):
            goes_on *= left / (left + passes)
            asked += goes_on
        costs += sum(file.tools[t].cost for t in own) * (asked / len(own) if own else 0.0)
    remedies = sum(_mean_payoff(file, r) for r in file.remedies) / len(file.remedies)
    return remedies - costs - _hand_overs(file)


def _mean_payoff(file: WorldFile, remedy: str) -> float:
    return sum(p * file.payoff[remedy][c] for c, p in file.prior.items())
