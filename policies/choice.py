"""Taking an action from scores: one function for training, evaluation, the live runtime and serving."""

import numpy as np
from numpy.typing import NDArray

ILLEGAL = -1e9
"""The score of an illegal candidate: its probability is exactly 0."""


def choose(logits_bk: NDArray[np.float32], chance_b: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sample one candidate a row by inverting the cumulative distribution of softmax(logits).

    The same chance and scores give the same choice, whatever else is in the batch.

    Args:
        logits_bk: ``(B, K)`` scores, illegal candidates at ILLEGAL.
        chance_b: ``(B,)`` numbers in [0, 1), each from ``runtime.seams.uniform``.
    """
    weights = np.exp((logits_bk - logits_bk.max(1, keepdims=True)).astype(np.float64))
    cumulated = weights.cumsum(1)
    total = cumulated[:, -1]
    at = np.minimum(chance_b * total, np.nextafter(total, 0.0))
    return (cumulated <= at[:, None]).sum(1)


def log_probabilities(logits_bk: NDArray[np.float32]) -> NDArray[np.float64]:
    """``(B, K)`` natural logarithms of softmax(logits)."""
    shifted = (logits_bk - logits_bk.max(1, keepdims=True)).astype(np.float64)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def log_probability(logits_bk: NDArray[np.float32], actions_b: NDArray[np.int64]) -> NDArray[np.float32]:
    """``(B,)`` natural logarithm of softmax(logits) at the actions."""
    return np.take_along_axis(log_probabilities(logits_bk), actions_b[:, None], 1)[:, 0].astype(np.float32)
