"""The main job from scratch: how near the team comes to the exact optimum, and in what time."""

from pathlib import Path
from statistics import fmean

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT, Trained, told, train
from bench.worlds import experiment_for, renamed, renumbered

EXPERIMENT = ROOT / "experiments" / "supply_chain.yaml"
SEEDS = 5
MINUTES, TARGET = 10.0, 0.95
LONG_MINUTES, LONG_TARGET = 30.0, 0.98
"""Score to reach (0: random play, 1: the exact optimum), and the training time it is to be reached in."""


def shipped(options: Options) -> Outcome:
    """The shipped world."""
    return _outcome({"supply_chain_v1": _seeds(EXPERIMENT, options)}, options)


def drawn(options: Options) -> Outcome:
    """Two worlds with other numbers, one of them with other names too."""
    files = [experiment_for(w, EXPERIMENT, options.out / "worlds") for w in (renumbered(11), renamed(12))]
    return _outcome({f.stem: _seeds(f, options) for f in files}, options)


def _seeds(file: Path, options: Options) -> list[Trained]:
    seeds = range(1 if options.quick else options.seeds or SEEDS)
    minutes = options.minutes or MINUTES
    return [
        train(file, (f"seed={s}", f"stop.minutes={minutes:g}", *options.overrides), options.out, quick=options.quick)
        for s in seeds
    ]


def _outcome(worlds: dict[str, list[Trained]], options: Options) -> Outcome:
    target = LONG_TARGET if (options.minutes or MINUTES) >= LONG_MINUTES else TARGET
    claims: list[Claim] = []
    for world, runs in worlds.items():
        scores = [r.result.score for r in runs]
        known = [s for s in scores if s is not None]
        worst = min(known) if len(known) == len(scores) else None
        longest = max(r.result.seconds for r in runs) / 60
        claims += [
            Claim(what=f"{world}: held-out score, worst of {len(runs)} seeds", unit="", measured=worst, target=target),
            Claim(what=f"{world}: mean score", unit="", measured=fmean(known) if known else None),
            Claim(what=f"{world}: training time, longest", unit="min", measured=longest),
        ]
    return Outcome(claims=tuple(claims), figures={n: [told(r) for r in runs] for n, runs in worlds.items()})
