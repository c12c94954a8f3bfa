"""From an environment's observations to the arrays a policy's network takes: the same code wherever a team runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.features import TextFeatures

Arrays = dict[str, NDArray[Any]]
"""``features`` (B, D) float32; ``action_mask`` (B, K) bool where there is one."""


class TextFeaturizer:
    """For teams: observations are ``{"text": str, "action_mask": (K,)}``."""

    def __init__(self, features: TextFeatures) -> None:
        self.features = features

    @property
    def size(self) -> int:
        """Length of the feature vector."""
        return self.features.size

    def __call__(self, observations: Sequence[Mapping[str, Any]]) -> Arrays:
        """A row an observation."""
        return {
            "features": self.features([o["text"] for o in observations]),
            "action_mask": np.array([o["action_mask"] for o in observations]) > 0,
        }
