"""What a training iteration puts into the instruments."""

from collections.abc import Iterable

from telemetry.metrics.meters import Meters
from telemetry.scalars import EvaluationReport, IterationReport

TRAINED = "trained"
"""The ``player`` label of the team that is trained, beside the baselines'."""


def feed(meters: Meters, report: IterationReport, latencies_ms: Iterable[tuple[str, float]] = ()) -> None:
    """Put an iteration's figures, and a sample of (agent, ms) decisions, into the instruments."""
    for agent, ms in latencies_ms:
        meters.record("agent.step.latency", ms, agent_id=agent, phase="training")
    _team(meters, report)
    _agents(meters, report)
    for name, policy in report.policies.items():
        meters.record("rl.learning_rate", policy.lr, policy=name)
        meters.record("rl.entropy_coefficient", policy.entropy_coeff, policy=name)
    if report.evaluation is not None:
        _evaluated(meters, report.evaluation)


def _team(meters: Meters, report: IterationReport) -> None:
    meters.record("rl.iteration", report.iteration)
    meters.record("rl.env_steps", report.env_steps)
    meters.record("rl.samples_per_second", report.steps_per_second)
    meters.record("rl.return", report.return_mean)
    meters.record("rl.episode.length", report.episode_len_mean)
    meters.record("rl.reward.missing", report.missing_rewards)
    meters.record("rl.memory", report.memory_mb * 1e6 if report.memory_mb is not None else None)
    # A sampler whose policy hash is not the learner's ends the run, so what gets here was sampled with the last update.
    meters.record("rl.staleness", 0)


def _agents(meters: Meters, report: IterationReport) -> None:
    for name, agent in report.agents.items():
        meters.record("agent.reward.value", agent.reward_raw_mean, agent_id=name)
        meters.record("agent.policy.entropy", agent.entropy, agent_id=name)
        meters.record("rl.agent.return", agent.return_mean, agent_id=name)
        meters.record("rl.reward.standardized", agent.reward_standardized_mean, agent_id=name)
        meters.record("rl.reward.std", agent.reward_raw_std, agent_id=name)
        meters.record("rl.kl", agent.kl, agent_id=name)
        meters.record("rl.clip_fraction", agent.clip_fraction, agent_id=name)
        meters.record("rl.explained_variance", agent.explained_variance, agent_id=name)
        meters.record("rl.gradient_norm", agent.grad_norm, agent_id=name)
        meters.record("rl.invalid_calls", agent.invalid_calls, agent_id=name)
        for term, value in agent.terms.items():
            meters.record("rl.reward.term", value, agent_id=name, term=term)
        for tool, share in agent.tool_mix.items():
            meters.record("rl.calls", share, agent_id=name, tool=tool)


def _evaluated(meters: Meters, found: EvaluationReport) -> None:
    meters.record("rl.evaluation.return", found.return_mean, player=TRAINED)
    for name, value in found.baselines.items():
        meters.record("rl.evaluation.return", value, player=name)
    meters.record("rl.evaluation.score", found.score)
    meters.record("rl.evaluation.success", found.success_rate)
    meters.record("rl.evaluation.cost", found.cost_usd)
