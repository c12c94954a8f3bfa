"""What standardizing rewards changes: the shipped experiment with and without it, the same seeds."""

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT, Trained, told, train
from bench.supply_chain import EXPERIMENT
from runtime.errors import RepertoryError
from telemetry.picture import learning_curves_png

SEEDS = 5
SHORTER = ("stop.iterations=80", "scenarios.eval.count=2000", "evaluation.role_swap=false", "gates.live=false")
"""Nearly a million decisions a run, where the shipped experiment takes nearly two."""
MANNERS = {"standardized": (), "as paid": ("rewards.standardize={per: none}",)}
PICTURE = ROOT / "docs" / "images" / "standardization.png"


def standardization(options: Options) -> Outcome:
    """Held-out scores of both, and a picture of the curves beside the runs (in docs/images for a full measurement)."""
    seeds = range(1 if options.quick else options.seeds or SEEDS)
    runs = {
        manner: [
            train(EXPERIMENT, (f"seed={s}", *SHORTER, *settings, *options.overrides), options.out, quick=options.quick)
            for s in seeds
        ]
        for manner, settings in MANNERS.items()
    }
    directories = {manner: [r.directory for r in those] for manner, those in runs.items()}
    learning_curves_png(directories, options.out / PICTURE.name if options.quick else PICTURE)
    claims = [claim for manner, those in runs.items() for claim in _claims(manner, those)]
    return Outcome(claims=tuple(claims), figures={manner: [told(r) for r in those] for manner, those in runs.items()})


def _claims(manner: str, runs: list[Trained]) -> list[Claim]:
    scores = [r.result.score for r in runs if r.result.score is not None]
    if len(scores) < len(runs):
        raise RepertoryError(f"{manner}: {len(runs) - len(scores)} of {len(runs)} runs ended without a score")
    return [
        Claim(what=f"{manner}: held-out score, worst of {len(runs)} seeds", unit="", measured=min(scores)),
        Claim(what=f"{manner}: mean score", unit="", measured=sum(scores) / len(scores)),
    ]
