"""Whether values are the same, and whether they go together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAME = 1e-9
"""Relative difference below which two values are one."""


def same(one: float, other: float) -> bool:
    """Whether two values are one, up to rounding."""
    return abs(one - other) <= SAME * (1.0 + abs(one))


def all_same(values: Sequence[float]) -> bool:
    """Whether all values are one."""
    return all(same(values[0], v) for v in values) if values else True


def rank_biserial(ones: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """How far the first group lies above the second, -1 to 1, however large each is; and the p-value (Mann-Whitney)."""
    from scipy.stats import mannwhitneyu

    found: Any = mannwhitneyu(ones, others)
    return 2.0 * float(found.statistic) / (len(ones) * len(others)) - 1.0, float(found.pvalue)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rho; 0 where one of the two does not vary."""
    from scipy.stats import rankdata

    return correlation(rankdata(one), rankdata(other))


def correlation(one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> float:
    """Pearson's r; 0 where one of the two does not vary."""
    x, y = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if x.size < 3 or all_same(x.tolist()) or all_same(y.tolist()):
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])
