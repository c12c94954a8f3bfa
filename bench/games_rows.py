"""Rows of games for which others have published a figure: RLlib's tuned examples."""

from collections.abc import Sequence
from statistics import fmean

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT, Trained, told, train
from telemetry.scalars import IterationReport

EXPERIMENTS = ROOT / "bench" / "experiments"
SEEDS = 5
"""Seeds behind a learning result."""
TWO_STEP_TARGET, TWO_STEP_OPTIMUM = 7.0, 8.0
"""Return of the team: RLlib's figure, and the best there is."""
CARTPOLE_TARGET, CARTPOLE_STEPS = 400.0, 300_000
"""Mean return of each agent, and within how many env steps."""
WATERWORLD_TARGET, WATERWORLD_STEPS = 0.324, 800_000
"""Mean return of each agent with a shared policy (PettingZoo's unit), and within how many env steps."""
CLOSE = 0.05
"""A mean return this near to the optimum is the optimum played without error."""


def two_step(options: Options) -> Outcome:
    """Independent PPO on the two-step game."""
    runs = _seeds("two_step.yaml", options, options.seeds or SEEDS)
    last = [_last_return(r.iterations) for r in runs]
    held_out = [r.result.eval.return_mean if r.result.eval else None for r in runs]
    best = [v for v in held_out if v is not None and v >= TWO_STEP_OPTIMUM - CLOSE]
    worst = min((v for v in last if v is not None), default=None)
    claims = (
        Claim(what="return in training, worst seed", unit="payoff", measured=worst, target=TWO_STEP_TARGET),
        Claim(what=f"seeds of {len(runs)} that play the optimum, 8", unit="seeds", measured=float(len(best))),
    )
    return Outcome(claims=claims, figures={"training_returns": last, "runs": [told(r) for r in runs]})


def cartpole(options: Options) -> Outcome:
    """Two poles, two policies."""
    runs = _seeds("cartpole.yaml", options, options.seeds or SEEDS)
    reached = [_best_of_all(r.iterations, CARTPOLE_STEPS) for r in runs]
    claims = (
        Claim(
            what="mean return of the weaker agent, worst seed",
            unit="steps",
            measured=min(reached, default=None),
            target=CARTPOLE_TARGET,
        ),
    )
    return Outcome(claims=claims, figures={"reached": reached, "runs": [told(r) for r in runs]})


def waterworld(options: Options) -> Outcome:
    """Two pursuers with a shared policy."""
    steps = () if options.quick else (f"stop.iterations={WATERWORLD_STEPS // 4000}", "ppo.train_batch_size=4000")
    file = ROOT / "experiments" / "waterworld.yaml"
    count = options.seeds or 1
    runs = [
        train(file, (f"seed={s}", *steps, *options.overrides), options.out, quick=options.quick) for s in range(count)
    ]
    reached = [_best_of_all(r.iterations, WATERWORLD_STEPS) for r in runs]
    claims = (Claim(what="mean return of an agent", unit="reward", measured=fmean(reached), target=WATERWORLD_TARGET),)
    return Outcome(claims=claims, figures={"reached": reached, "runs": [told(r) for r in runs]})


def _seeds(file: str, options: Options, count: int) -> list[Trained]:
    return [
        train(EXPERIMENTS / file, (f"seed={s}", *options.overrides), options.out, quick=options.quick)
        for s in range(1 if options.quick else count)
    ]


def _last_return(iterations: Sequence[IterationReport]) -> float | None:
    return iterations[-1].return_mean if iterations else None


def _best_of_all(iterations: Sequence[IterationReport], steps: int) -> float:
    """The best iteration's mean return of the weakest agent, up to that many env steps; sampled, not greedy, play."""
    weakest = [
        min((a.return_mean for a in i.agents.values() if a.return_mean is not None), default=float("-inf"))
        for i in iterations
        if i.env_steps <= steps
    ]
    return max(weakest, default=float("-inf"))
