"""The judgement: from a plan and what is known of a version to what is to be done with it. Pure.

Bounds hold at all times at once, so it may be asked after every session without adding to the risk of a wrong answer.
"""

from collections.abc import Iterator, Mapping

from serving.rollout.comparison import limits
from serving.rollout.plan import Metric, Plan
from serving.rollout.sequences import Bounds
from serving.rollout.trial import Decision, Trial
from serving.rollout.words import compared, needed, percent, short_of


def judged(plan: Plan, trial: Trial) -> Decision:
    """What is to be done: roll back what is certainly worse, hold what is not known well enough, else go on."""
    known: dict[Metric, Bounds] = {metric: trial.comparisons[metric].bounds(plan.level) for metric in plan.watch}
    worse: list[Metric] = [m for m in plan.watch if known[m].high < -limits(m, plan)[0]]
    if worse:
        return Decision(action="rollback", why="; ".join(_worse(plan, trial, m, known[m]) for m in worse))
    if reasons := list(_too_little(plan, trial, known)):
        return Decision(action="hold", why="; ".join(reasons))
    ratio = following(plan, trial.ratio)
    figures = "; ".join(compared(trial, m, known[m]) for m in plan.watch)
    if ratio < 1:
        why = f"{_played(trial)}, and nothing watched is certainly worse: {figures}"
        return Decision(action="step", why=why, ratio=ratio)
    if doubts := [short_of(trial, m, known[m], plan) for m in plan.watch if known[m].low <= -limits(m, plan)[1]]:
        return Decision(action="hold", why="; ".join(doubts))
    return Decision(action="promote", why=f"{_played(trial)}, and nothing watched is worse: {figures}", ratio=1.0)


def following(plan: Plan, ratio: float) -> float:
    """The step after a share; 1 after the last."""
    return next((step for step in plan.steps if step > ratio + 1e-9), 1.0)


def _played(trial: Trial) -> str:
    return f"{trial.version} has {trial.at_step} judged sessions at {percent(trial.ratio)}"


def _worse(plan: Plan, trial: Trial, metric: Metric, bounds: Bounds) -> str:
    return f"{compared(trial, metric, bounds)}; certainly worse by more than {needed(metric, plan, 'tolerance')}"


def _too_little(plan: Plan, trial: Trial, known: Mapping[Metric, Bounds]) -> Iterator[str]:
    """What is missing to go a step further."""
    if trial.at_step < plan.minimum_sessions:
        yield f"{_played(trial)} of the {plan.minimum_sessions} that the plan asks for"
    for metric, bounds in known.items():
        comparison = trial.comparisons[metric]
        for name, side in ((trial.version, comparison.canary), (trial.baseline, comparison.baseline)):
            if not side.count:
                yield f"nothing is known of {name}'s {metric.replace('_', ' ')}"
        if comparison.canary.count and comparison.baseline.count and bounds == Bounds():
            yield f"{comparison.sequence.count} comparisons of {metric.replace('_', ' ')} are too few to say anything"
