"""Online standardization of rewards: running mean and variance a key, exact to merge, never looking ahead."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

Floats = NDArray[np.float64]

TINY = 1e-12
"""A variance at or below this, relative to the mean's square plus one, is none: such rewards pass through unscaled."""


class RewardStandardizer:
    """``z = (r - mean) / std``, clipped, with one running mean and variance a key (an agent, a policy, the team).

    Statistics grow by ``update`` and are read by ``transform``: transform a batch before updating with it, so that no
    reward is judged by what came later. Evaluation and serving only transform. Statistics of several processes merge
    exactly (Chan, Golub and LeVeque 1983): send each process's own part, not the whole it started from.

    Args:
        center: subtract the mean. Switch it off where the sign of the reward or the length of the episode carries
            meaning: subtracting a mean pays for, or taxes, every further step.
        clip: bound on the absolute standardized reward, in standard deviations.
    """

    def __init__(self, *, center: bool = True, clip: float = 10.0) -> None:
        if not clip > 0:
            raise ValueError(f"clip must be positive, not {clip}")
        self.center, self.clip = center, clip
        self._scalers: dict[str, Any] = {}
        """scikit-learn's StandardScaler by key."""

    def update(self, key: str, rewards: Sequence[float] | Floats) -> None:
        """Count rewards in, ``(N,)`` in the terms' own unit. Raises ValueError if one is not finite."""
        values = np.asarray(rewards, np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"rewards of {key} are not all finite: a missing reward is left out, not counted in")
        if values.size:
            scaler = self._scalers.setdefault(key, StandardScaler())
            scaler.partial_fit(values.reshape(-1, 1))

    def transform(self, key: str, rewards: Sequence[float] | Floats) -> Floats:
        """``(N,)`` standardized rewards by what is known now; as they are while the key passes through."""
        values = np.asarray(rewards, np.float64)
        if self.passes_through(key):
            return values.copy()
        mean, std = self.mean(key) if self.center else 0.0, math.sqrt(self.variance(key))
        return np.clip((values - mean) / std, -self.clip, self.clip)

    def passes_through(self, key: str) -> bool:
        """Whether rewards of this key are left as they are, since nothing is known of them or they do not vary."""
        return self.variance(key) <= TINY * (1.0 + self.mean(key) ** 2)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys with statistics."""
        return tuple(self._scalers)

    def count(self, key: str) -> int:
        """Rewards counted in."""
        return int(self._scalers[key].n_samples_seen_) if key in self._scalers else 0

    def mean(self, key: str) -> float:
        """Their mean, in the terms' own unit; 0 if there is none yet."""
        return float(self._scalers[key].mean_[0]) if key in self._scalers else 0.0

    def variance(self, key: str) -> float:
        """Their population variance; 0 if there is none yet."""
        return float(self._scalers[key].var_[0]) if key in self._scalers else 0.0

    def merge(self, other: "RewardStandardizer") -> None:
        """Count in all that ``other`` counted; the two must not share samples."""
        for key in other.keys:
            n, mean, m2 = self._moments(key)
            k, its_mean, its_m2 = other._moments(key)
            total, gap = n + k, its_mean - mean
            if total:
                merged = mean + gap * k / total
                self._set(key, total, merged, (m2 + its_m2 + gap * gap * n * k / total) / total)

    def _moments(self, key: str) -> tuple[int, float, float]:
        """Count, mean and sum of squared deviations."""
        n = self.count(key)
        return n, self.mean(key), self.variance(key) * n

    def _set(self, key: str, count: int, mean: float, variance: float) -> None:
        scaler: Any = StandardScaler()
        self._scalers[key] = scaler
        scaler.n_samples_seen_ = np.int64(count)
        scaler.mean_, scaler.var_ = np.array([mean]), np.array([variance])
        scaler.scale_ = np.sqrt(scaler.var_)
        scaler.n_features_in_ = 1

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        keys = {k: {"count": self.count(k), "mean": self.mean(k), "variance": self.variance(k)} for k in self.keys}
        return {"center": self.center, "clip": self.clip, "keys": keys}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a state, forgetting what was counted. Raises ValueError if it was made with other settings."""
        if (state["center"], state["clip"]) != (self.center, self.clip):
            raise ValueError(
                f"the saved standardizer has center={state['center']}, clip={state['clip']}; "
                f"this one center={self.center}, clip={self.clip}"
            )
        self._scalers = {}
        for key, s in state["keys"].items():
            self._set(key, int(s["count"]), float(s["mean"]), float(s["variance"]))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The standardizer that ``state`` was taken from."""
        made = cls(center=bool(state["center"]), clip=float(state["clip"]))
        made.load(state)
        return made
