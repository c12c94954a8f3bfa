"""What is settled once, before the first iteration, and read back on resume."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assembly.build import Build, KeyedStandardizer
from policies.features import from_state
from policies.featurize import TextFeaturizer
from trainers.evaluate import Baselines, baselines
from trainers.measure import EPISODES, Measured, featurizers, measure, seed_statistics

PREPARED = "prepared.json"
"""In the run directory: features, first statistics and baselines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What training starts from."""

    featurizers: Mapping[str, TextFeaturizer | None]
    standardizer: KeyedStandardizer | None
    compared: Baselines
    random_return: float | None
    """Mean return of the random play, in the terms' unit; None where a reward was missing throughout."""
    steps_per_episode: float
    usd_per_episode: float
    """What the tools were billed in random play, US dollars."""


def prepare(build: Build, directory: Path) -> Prepared:
    """Measure by random play and write it into the run directory, or read what an earlier start of the run wrote."""
    path = directory / PREPARED
    if path.exists():
        return _read(build, json.loads(path.read_text()))
    found = measure(build)
    standardizer = build.standardizer()
    seed_statistics(standardizer, found)
    made = Prepared(
        featurizers=featurizers(build, found),
        standardizer=standardizer,
        compared=baselines(build),
        random_return=float(np.mean(found.returns)) if found.returns else None,
        steps_per_episode=found.steps / EPISODES,
        usd_per_episode=found.cost_usd / EPISODES,
    )
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(_told(made, found), indent=1))
    unfinished.rename(path)
    return made


def _told(made: Prepared, found: Measured) -> dict[str, Any]:
    return {
        "features": {n: f.features.state() if f else None for n, f in made.featurizers.items()},
        "standardizer": made.standardizer.state() if made.standardizer else None,
        "baselines": dict(made.compared.returns),
        "intervals": {n: list(i) for n, i in made.compared.intervals.items()},
        "random_return": made.random_return,
        "steps_per_episode": made.steps_per_episode,
        "usd_per_episode": made.usd_per_episode,
        "missing": found.missing,
    }


def _read(build: Build, told: Mapping[str, Any]) -> Prepared:
    standardizer = build.standardizer()
    if standardizer is not None:
        standardizer.load(told["standardizer"])
    return Prepared(
        featurizers={n: TextFeaturizer(from_state(s)) if s else None for n, s in told["features"].items()},
        standardizer=standardizer,
        compared=Baselines(told["baselines"], {n: (i[0], i[1]) for n, i in told["intervals"].items()}),
        random_return=told["random_return"],
        steps_per_episode=told["steps_per_episode"],
        usd_per_episode=told["usd_per_episode"],
    )
