"""Asking everything where only a suspicion travels: each role weighs what it heard as well as what it found."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from envs.supply_chain.optimum import spent_on_everything, weigh
from envs.supply_chain.world_file import WorldFile

Floats = NDArray[np.float64]


class Hearsay:
    """How far a suspicion can be trusted when every role asks all its tools and names the likeliest cause."""

    def __init__(self, file: WorldFile) -> None:
        self.file = file
        self._prior_c = weigh(file, {})
        causes = len(file.causes)
        self._heard: dict[str, Floats] = {}
        """By agent: ``(suspicions, causes)`` probability of hearing each suspicion under each cause."""
        heard_vc = np.ones((1, causes))
        for agent in file.agents[:-1]:
            self._heard[agent] = heard_vc
            heard_vc = self._named(heard_vc, self._findings(agent))
        self._heard[file.agents[-1]] = heard_vc

    def _findings(self, agent: str) -> Floats:
        """``(combinations, causes)`` probability of all that the agent's tools can find together."""
        found_fc = np.ones((1, len(self.file.causes)))
        for name in self.file.owned(agent):
            chance_fc = np.array([self.file.tools[name].likelihood[c] for c in self.file.causes]).T
            found_fc = (found_fc[:, None, :] * chance_fc[None]).reshape(-1, len(self.file.causes))
        return found_fc

    def _named(self, heard_vc: Floats, found_fc: Floats) -> Floats:
        named_vc = np.zeros((len(self.file.causes), len(self.file.causes)))
        for one_c in heard_vc:
            joint_fc = one_c * found_fc
            np.add.at(named_vc, (joint_fc * self._prior_c).argmax(-1), joint_fc)
        return named_vc

    def _weights(self, agent: str, seen: Mapping[str, str], heard: str | None) -> Floats:
        heard_vc = self._heard[agent]
        row_c = heard_vc[self.file.causes.index(heard)] if heard in self.file.causes and len(heard_vc) > 1 else 1.0
        return weigh(self.file, seen) * row_c

    def suspicion(self, agent: str, seen: Mapping[str, str], heard: str | None) -> str:
        """The likeliest cause, given the agent's own findings and what it was told."""
        return self.file.causes[int(self._weights(agent, seen, heard).argmax())]

    def remedy(self, seen: Mapping[str, str], heard: str | None) -> str:
        """The remedy that pays most to the last agent's knowledge."""
        weights = self._weights(self.file.agents[-1], seen, heard)
        return self.file.remedies[int((self.file.payoff_rc @ weights).argmax())]

    @property
    def value(self) -> float:
        """Expected return (USD)."""
        weights_vc = self._heard[self.file.agents[-1]] * self._prior_c
        return float((weights_vc @ self.file.payoff_rc.T).max(-1).sum()) - spent_on_everything(self.file)


def hearsay_for(file: WorldFile) -> Hearsay:
    """The world's hearsay; computed once for equal files."""
    return _hearsay(file.model_dump_json())


@lru_cache(maxsize=8)
def _hearsay(text: str) -> Hearsay:
    return Hearsay(WorldFile.model_validate_json(text))
