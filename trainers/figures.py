"""An iteration's figures, from what the engine gave: one report for the metrics file, TensorBoard and the terminal."""

import resource
from collections.abc import Mapping
from typing import Any

from assembly.build import Build
from runtime.types import AgentId
from telemetry.scalars import AgentReport, EvaluationReport, IterationReport, PolicyReport
from trainers.checkpoints import TrainerState
from trainers.rllib.engine import Iterated


def iteration_report(
    build: Build, state: TrainerState, given: Iterated, seconds: float, evaluation: EvaluationReport | None
) -> IterationReport:
    """The report of the iteration that led to ``state`` and took ``seconds``."""
    tally, agents = given.tally, build.learners
    return IterationReport(
        iteration=state.iteration,
        env_steps=state.env_steps,
        seconds=state.seconds,
        steps_per_second=given.env_steps / seconds if seconds > 0 else None,
        return_mean=sum(tally.returns) / len(tally.returns) if tally.returns else given.episodes.get("return"),
        episode_len_mean=tally.steps / tally.episodes if tally.episodes else given.episodes.get("length"),
        agents={a: _agent(build, a, given) for a in agents},
        policies={n: _policy(given.learners.get(n, {})) for n in build.learned},
        missing_rewards=given.missing,
        evaluation=evaluation,
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        timers={"sample": given.sample_seconds, "learn": given.learn_seconds},
    )


def _agent(build: Build, agent: AgentId, given: Iterated) -> AgentReport:
    figures: Mapping[str, Any] = given.learners.get(build.policy_of[agent], {})
    rewards: Mapping[str, Any] = figures.get("rewards", {}).get(agent, {})
    tally = given.tally
    calls = {tool: n for (a, tool), n in tally.calls.items() if a == agent}
    decisions = sum(calls.values())
    return AgentReport(
        return_mean=given.episodes.get(f"agent/{agent}"),
        reward_raw_mean=_number(rewards, "raw_mean"),
        reward_raw_std=_number(rewards, "raw_std"),
        reward_standardized_mean=_number(rewards, "standardized_mean"),
        reward_standardized_std=_number(rewards, "standardized_std"),
        terms={n: v / tally.episodes for n, v in tally.paid_to(agent).items()} if tally.episodes else {},
        entropy=_number(figures, "entropy"),
        kl=_number(figures, "approx_kl"),
        clip_fraction=_number(figures, "clip_fraction"),
        explained_variance=_number(figures, "vf_explained_var"),
        grad_norm=_number(figures, "gradient_norm"),
        tool_mix={tool or "malformed": n / decisions for tool, n in sorted(calls.items())},
        invalid_calls=tally.invalid[agent],
    )


def _policy(figures: Mapping[str, Any]) -> PolicyReport:
    rate = next((v for k, v in figures.items() if k.endswith("learning_rate")), None)
    return PolicyReport(lr=None if rate is None else float(rate), entropy_coeff=_number(figures, "curr_entropy_coeff"))


def _number(figures: Mapping[str, Any], name: str) -> float | None:
    value = figures.get(name)
    return None if value is None else float(value)
