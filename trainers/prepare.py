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
from policies.lm.featurize import PromptFeaturizer, prompts_from_state
from trainers.evaluate import Baselines, baselines
from trainers.lm_prepare import located, prompts
from trainers.measure import EPISODES, Measured, featurizers, measure, seed_statistics
from trainers.missing import MissingRewards, surely, told
from trainers.run_directory import PREPARED, Unusable


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What training starts from."""

    featurizers: Mapping[str, TextFeaturizer | PromptFeaturizer | None]
    standardizer: KeyedStandardizer | None
    compared: Baselines
    random_return: float | None
    """Mean return of the random play, in the terms' unit; None where a reward was missing throughout."""
    steps_per_episode: float
    usd_per_episode: float
    """What the tools were billed in random play, US dollars."""
    cost_usd: float
    """What preparing was billed in all, US dollars."""


def prepare(build: Build, directory: Path) -> Prepared:
    """Measure by random play and write it into the run directory, or read what an earlier start of the run wrote.

    Raises MissingRewards where random play already lacks more rewards than the file allows.
    """
    path = directory / PREPARED
    if path.exists():
        try:
            return _read(build, json.loads(path.read_text()))
        except (ValueError, LookupError, TypeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise Unusable(path, f"is none of this version's: {what}; delete it to measure it again") from error
    located(build)
    found = measure(build)
    limit = build.experiment.rewards.missing_limit
    if surely(found.missing, EPISODES, limit):
        raise MissingRewards(f"at random play, {told(found.missing, EPISODES, limit, found.why)}")
    standardizer = build.standardizer()
    seed_statistics(standardizer, found)
    compared = baselines(build)
    made = Prepared(
        featurizers={**featurizers(build, found), **prompts(build, found.texts, directory)},
        standardizer=standardizer,
        compared=compared,
        random_return=float(np.mean(found.returns)) if found.returns else None,
        steps_per_episode=found.steps / EPISODES,
        usd_per_episode=found.cost_usd / EPISODES,
        cost_usd=found.cost_usd + compared.cost_usd,
    )
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(_kept(made, found), indent=1))
    unfinished.rename(path)
    return made


def _kept(made: Prepared, found: Measured) -> dict[str, Any]:
    return {
        "features": {n: f.features.state() if f else None for n, f in made.featurizers.items()},
        "standardizer": made.standardizer.state() if made.standardizer else None,
        "baselines": dict(made.compared.returns),
        "intervals": {n: list(i) for n, i in made.compared.intervals.items()},
        "random_return": made.random_return,
        "steps_per_episode": made.steps_per_episode,
        "usd_per_episode": made.usd_per_episode,
        "cost_usd": made.cost_usd,
        "missing": found.missing,
    }


def _read(build: Build, kept: Mapping[str, Any]) -> Prepared:
    standardizer = build.standardizer()
    if standardizer is not None:
        standardizer.load(kept["standardizer"])
    return Prepared(
        featurizers={n: _featurizer(s) if s else None for n, s in kept["features"].items()},
        standardizer=standardizer,
        compared=Baselines(kept["baselines"], {n: (i[0], i[1]) for n, i in kept["intervals"].items()}),
        random_return=kept["random_return"],
        steps_per_episode=kept["steps_per_episode"],
        usd_per_episode=kept["usd_per_episode"],
        cost_usd=kept["cost_usd"],
    )


def _featurizer(state: Mapping[str, Any]) -> TextFeaturizer | PromptFeaturizer:
    if state["kind"] == "prompts":
        return PromptFeaturizer(prompts_from_state(state))
    return TextFeaturizer(from_state(state))
