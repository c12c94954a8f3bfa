"""Figures of a trial as an operator reads them."""

import math
from typing import Literal

from serving.rollout.comparison import Comparison
from serving.rollout.pairing import Sum
from serving.rollout.plan import Metric, Plan
from serving.rollout.sequences import Bounds
from serving.rollout.trial import Trial


def percent(share: float) -> str:
    """0.05 as ``5%``."""
    return f"{100 * share:.3g}%"


def compared(trial: Trial, metric: Metric, bounds: Bounds) -> str:
    """Both versions' mean of a metric, and the advantage with its bounds."""
    comparison = trial.comparisons[metric]
    new, old = (_mean(metric, side) for side in (comparison.canary, comparison.baseline))
    named = metric.replace("_", " ")
    return f"{named}: {trial.version} {new}, {trial.baseline} {old}, {_difference(comparison, bounds)}"


def short_of(trial: Trial, metric: Metric, bounds: Bounds, plan: Plan) -> str:
    """Why a version cannot be promoted yet."""
    margin = needed(metric, plan, "margin")
    return f"{compared(trial, metric, bounds)}; not certain yet to be no worse by {margin}"


def needed(metric: Metric, plan: Plan, which: Literal["tolerance", "margin"]) -> str:
    """A tolerance or margin of the plan."""
    rule = {
        "reward": plan.reward,
        "errors": plan.errors,
        "invalid_calls": plan.invalid_calls,
        "latency": plan.latency,
    }[metric]
    limit: float = getattr(rule, which)
    if metric == "reward":
        return f"{limit:g} standard deviations"
    return f"{limit:g} times" if metric == "latency" else percent(limit)


def _mean(metric: Metric, side: Sum) -> str:
    if not side.count:
        return "unknown"
    if metric == "reward":
        return f"{side.mean:.4g}"
    return f"{math.exp(side.mean):.3g} ms" if metric == "latency" else percent(side.mean)


def _difference(comparison: Comparison, bounds: Bounds) -> str:
    mean, low, high = comparison.sequence.mean, bounds.low, bounds.high
    if comparison.metric == "reward":
        return f"difference {mean:+.2f} standard deviations, between {low:+.2f} and {high:+.2f}"
    if comparison.metric == "latency":
        return f"{math.exp(-mean):.2f} times as long, between {math.exp(-high):.2f} and {_times(-low)}"
    return f"difference {_points(-mean)}, between {_points(-high)} and {_points(-low)}"


def _times(logarithm: float) -> str:
    return f"{math.exp(logarithm):.2f}" if math.isfinite(logarithm) else "any"


def _points(share: float) -> str:
    return f"{100 * max(-1.0, min(1.0, share)):+.2g} points"
