"""What a run shows: the figures of one iteration, of an evaluation and of the whole run, and their names as curves."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

Figure = float | None
"""A measured number; None: not measured, or not finite (NaN and infinities are written as ``null``)."""


def _figures() -> dict[str, Figure]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentReport:
    """One agent's figures over an iteration. Rewards are in the terms' unit, per decision."""

    return_mean: Figure = None
    """Sum of the agent's raw rewards per episode, mean."""
    reward_raw_mean: Figure = None
    reward_raw_std: Figure = None
    reward_standardized_mean: Figure = None
    """Dimensionless, as are all figures of standardized rewards."""
    reward_standardized_std: Figure = None
    terms: Mapping[str, Figure] = field(default_factory=_figures)
    """Each reward term's sum per episode, mean."""
    entropy: Figure = None
    """Of the policy, nat; None for an agent that does not learn, as for the next ones."""
    kl: Figure = None
    """Approximate divergence of the new policy from the one that sampled, nat."""
    clip_fraction: Figure = None
    """Share of decisions whose probability ratio was clipped, 0 to 1."""
    explained_variance: Figure = None
    """Of the returns by the critic, 1 at best."""
    grad_norm: Figure = None
    """Euclidean norm of the gradient before clipping."""
    tool_mix: Mapping[str, float] = field(default_factory=dict[str, float])
    """Share of each call among the agent's decisions, 0 to 1."""
    invalid_calls: int = 0
    """Calls that were malformed, unknown, ill-typed, illegal or over budget."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyReport:
    """One policy's settings, as they stood in an iteration."""

    lr: Figure = None
    entropy_coeff: Figure = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentEvaluation:
    """One agent's part in an evaluation."""

    return_mean: Figure = None
    """Sum of the agent's raw rewards per episode, mean."""
    tool_calls: Figure = None
    """Per episode."""
    invalid_calls: Figure = None
    """Calls per episode that were malformed, unknown, ill-typed, illegal or over budget."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationReport:
    """The team on held-out scenarios, beside the baselines."""

    episodes: int
    return_mean: Figure
    """The team's return per episode, in the terms' unit."""
    return_ci95: tuple[float, float] | None = None
    """Bootstrap 95% interval of the mean return, low and high."""
    score: Figure = None
    """(return − random) / (optimal or best baseline − random)."""
    success_rate: Figure = None
    """0 to 1."""
    tool_calls: Figure = None
    """Per episode."""
    cost_usd: Figure = None
    """What tools and models were billed per episode, US dollars."""
    baselines: Mapping[str, Figure] = field(default_factory=_figures)
    """Each baseline's mean return."""
    baselines_ci95: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Intervals of those baselines that were played; an exact one has none."""
    agents: Mapping[str, AgentEvaluation] = field(default_factory=dict[str, AgentEvaluation])
    """Each agent's part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseReport:
    """A regression case, played once more. Returns are sums of the terms that both runs were judged by."""

    passed: bool
    """It ended well, and no worse than it was recorded."""
    worse: bool
    """It went worse than it was recorded: it was paid less, or no longer ended well."""
    success: bool
    return_now: Figure = None
    return_recorded: Figure = None
    terms: Mapping[str, Figure] = field(default_factory=_figures)
    """Each reward term's sum."""
    terms_recorded: Mapping[str, Figure] = field(default_factory=_figures)
    """The same, as it was recorded."""
    why: str = ""
    """Why it was kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationReport:
    """All figures of one training iteration: one line of metrics.jsonl."""

    iteration: int
    """From 1."""
    env_steps: int
    """The team's decisions so far, over all resumes."""
    seconds: float
    """Training time so far, over all resumes, s."""
    steps_per_second: Figure = None
    """Decisions per second in this iteration."""
    return_mean: Figure = None
    """The team's raw return per episode, mean over the iteration's episodes."""
    episode_len_mean: Figure = None
    """Decisions per episode."""
    agents: Mapping[str, AgentReport] = field(default_factory=dict[str, AgentReport])
    policies: Mapping[str, PolicyReport] = field(default_factory=dict[str, PolicyReport])
    missing_rewards: int = 0
    """Trajectories dropped in this iteration because a term failed."""
    evaluation: EvaluationReport | None = None
    """Where this iteration was evaluated."""
    memory_mb: Figure = None
    """Resident memory of the training process, MB."""
    timers: Mapping[str, float] = field(default_factory=dict[str, float])
    """What the iteration's time went to (sample, learn, …), s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """How a run ended: result.json."""

    status: str
    run_dir: str
    reason: str = ""
    """Why the run ended, in words."""
    version: str = ""
    """Content hash of the export; empty where there is none."""
    seed: int = 0
    iterations: int = 0
    env_steps: int = 0
    seconds: float = 0.0
    """Training time, s."""
    eval: EvaluationReport | None = None
    baselines: Mapping[str, Figure] = field(default_factory=_figures)
    """Each baseline's mean return."""
    score: Figure = None
    role_swaps: Mapping[str, Figure] = field(default_factory=_figures)
    """Mean return when two roles exchange their policies, by ``A<->B``."""
    regressions: Mapping[str, CaseReport] = field(default_factory=dict[str, CaseReport])
    """Sessions that had gone badly, by name."""


ITERATION: TypeAdapter[IterationReport] = TypeAdapter(IterationReport)
"""Reads and writes a line of metrics.jsonl."""
EVALUATION: TypeAdapter[EvaluationReport] = TypeAdapter(EvaluationReport)
"""Reads and writes an evaluation, as it stands in the other two."""
RESULT: TypeAdapter[RunResult] = TypeAdapter(RunResult)
"""Reads and writes result.json."""


def flatten(mapping: Mapping[str, Any]) -> dict[str, float]:
    """Every finite number in nested mappings, under its keys joined by ``/``; anything else has no curve."""
    return dict(_leaves("", mapping))


def scalars(report: IterationReport) -> dict[str, float]:
    """The iteration's curves: name, grouped by what a reader looks for together, and value."""
    figures = ITERATION.dump_python(report)
    del figures["evaluation"]
    agents = {name: _agent_curves(agent) for name, agent in figures.pop("agents").items()}
    policies, timers = figures.pop("policies"), figures.pop("timers")
    team = {"return": figures.pop("return_mean"), "episode_len": figures.pop("episode_len_mean")}
    del figures["env_steps"]
    run = {**figures, "timer": timers}
    return flatten(
        {"team": team, "agent": agents, "eval": _eval_curves(report.evaluation), "policy": policies, "run": run},
    )


def mean_entropy(report: IterationReport) -> Figure:
    """Mean of the learning agents' entropies, nat."""
    known = [a.entropy for a in report.agents.values() if a.entropy is not None]
    return fmean(known) if known else None


def largest_kl(report: IterationReport) -> Figure:
    """The largest of the learning agents' divergences, nat: the one that would raise an alarm."""
    return max((a.kl for a in report.agents.values() if a.kl is not None), default=None)


def _agent_curves(agent: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"return_mean": "return", "terms": "term", "tool_mix": "tool"}
    return {renamed.get(key, key): value for key, value in agent.items()}


def evaluation_curves(evaluation: EvaluationReport) -> dict[str, float]:
    """An evaluation's points on its curves."""
    return flatten({"eval": _eval_curves(evaluation)})


def _eval_curves(found: EvaluationReport | None) -> dict[str, Any]:
    if found is None:
        return {}
    evaluation = EVALUATION.dump_python(found)
    low, high = evaluation["return_ci95"] or (None, None)
    kept = {key: evaluation[key] for key in ("episodes", "score", "success_rate", "tool_calls", "cost_usd")}
    interval = {"return": evaluation["return_mean"], "return_low": low, "return_high": high}
    return {**interval, **kept, "baseline": evaluation["baselines"], "agent": evaluation["agents"]}


def _leaves(prefix: str, mapping: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(f"{name}/", value)  # pyright: ignore[reportUnknownArgumentType] keys are names
        elif isinstance(value, (int, float)) and math.isfinite(value):
            yield name, float(value)
