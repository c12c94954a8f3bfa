"""Figures as text: short, aligned, and a dash where there is nothing to say."""

import math

from telemetry.scalars import EvaluationReport, Figure, IterationReport, largest_kl, mean_entropy

NONE = "-"


def number(value: Figure, spec: str = ".2f") -> str:
    """The number in that format; a dash where it is missing."""
    return NONE if value is None else format(value, spec)


def duration(seconds: Figure) -> str:
    """Seconds as ``1h02m``, ``4m10s`` or ``9s``."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def interval(ci95: tuple[float, float] | None) -> str:
    """An interval's ends in brackets; a dash where it was not measured."""
    return NONE if ci95 is None else f"[{number(ci95[0])}, {number(ci95[1])}]"


def plain_line(report: IterationReport, iterations: int | None, left_s: float | None) -> str:
    """One iteration on one aligned line of ASCII, below 140 characters; after an evaluation its return and score."""
    of = f"/{iterations}" if iterations else ""
    parts = [
        f"iter {report.iteration:>4}{of}",
        f"{report.env_steps:>10,} steps",
        f"return {number(report.return_mean):>9}",
        f"entropy {number(mean_entropy(report), '.3f'):>6}",
        f"KL {number(largest_kl(report), '.4f'):>7}",
        f"{number(report.steps_per_second, ',.0f'):>7} steps/s",
        f"{duration(left_s):>6} left",
    ]
    if report.evaluation is not None:
        parts.append(f"eval {number(report.evaluation.return_mean)} ({number(report.evaluation.score, '.3f')})")
    if report.missing_rewards:
        parts.append(f"missing {report.missing_rewards}")
    return " | ".join(parts)


def beside_baselines(evaluation: EvaluationReport) -> str:
    """An evaluation's return and score, then the baselines' returns from the best down."""
    ranked = sorted(evaluation.baselines.items(), key=lambda item: -(item[1] if item[1] is not None else -math.inf))
    others = ", ".join(f"{name} {number(value)}" for name, value in ranked)
    score = f" (score {number(evaluation.score, '.3f')})" if evaluation.score is not None else ""
    return f"{number(evaluation.return_mean)}{score}" + (f" | {others}" if others else "")
