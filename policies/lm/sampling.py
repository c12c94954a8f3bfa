"""How one is taken from scores: the likeliest, or one drawn by keyed chance at a temperature, among what is likely."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.choice import ILLEGAL, choose
from runtime.seams import uniform

Scores = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """The manner of drawing."""

    temperature: float = 1.0
    """What scores are divided by; 0: the likeliest is taken."""
    top_p: float = 1.0
    """Only the likeliest ones are drawn from that have so much probability together (Holtzman et al. 2020)."""
    seed: int = 0
    """With the place of what is drawn, what chance depends on."""

    def pick(self, scores: Scores, place: int) -> int:
        """One of ``(K,)`` scores, nat; those at or below ILLEGAL are never taken."""
        if self.temperature == 0:
            return int(scores.argmax())
        scaled = np.where(scores > ILLEGAL, scores.astype(np.float64) / self.temperature, -np.inf)
        return int(choose(self._likely(scaled)[None], np.array([uniform("said", self.seed, place)]))[0])

    def _likely(self, scores: Scores) -> Scores:
        """The scores, with -inf for what is left out."""
        if self.top_p >= 1:
            return scores
        order = np.argsort(-scores, kind="stable")
        weights = np.exp(scores[order] - scores.max())
        before = np.cumsum(weights) - weights
        left = np.full_like(scores, -np.inf)
        kept = order[(before < self.top_p * weights.sum()) | (np.arange(len(order)) == 0)]
        left[kept] = scores[kept]
        return left
