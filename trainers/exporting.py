"""From a finished run to a version: weights, how observations become features, statistics, and where it comes from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from assembly.build import Build
from assembly.loading import resolved
from assembly.recorded import lineage
from assembly.sources import commit_of, source_hash
from policies.encoder import EncoderSpec
from policies.export import as_json, encoder_files, write
from policies.featurize import TextFeaturizer
from policies.lm.featurize import PromptFeaturizer
from policies.lm.saving import lm_files
from policies.lm.spec import LMSpec
from policies.prompted import prompted_state
from runtime.records import Decided, Observed, Record
from trainers.checkpoints import TrainerState
from trainers.prepare import Prepared
from trainers.rllib.engine import Engine

LINEAGE = "lineage.json"
"""Beside the content, not part of it: where the version comes from."""
GOLDEN = 32
"""Decisions that are remembered with a version: some of every role's, in no more than a second's work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What a version is made of, beside the experiment."""

    actors: Mapping[str, Any]
    """The networks that decide, by policy."""
    specs: Mapping[str, EncoderSpec | LMSpec]
    featurizers: Mapping[str, TextFeaturizer | PromptFeaturizer | None]
    statistics: Mapping[str, Any]
    """The reward standardizer's state."""
    sampled: Sequence[Sequence[Record]] = ()
    """Episodes that it played greedily: whoever loads it must decide as they did."""


def exported(prepared: Prepared, engine: Engine, sampled: Sequence[Sequence[Record]]) -> Exported:
    """The team as the engine has it now."""
    return Exported(
        actors=engine.actors(),
        specs={n: s.spec for n, s in engine.policies.items()},
        featurizers=prepared.featurizers,
        statistics=engine.standardizer_state(),
        sampled=sampled,
    )


def export(build: Build, parts: Exported, directory: Path) -> str:
    """Write a version; returns its name, the hash of its content."""
    files: dict[str, bytes] = {}
    for name, actor in parts.actors.items():
        featurizer = parts.featurizers[name]
        features = featurizer.features.state() if featurizer else {"kind": "flat"}
        spec = parts.specs[name]
        if isinstance(spec, LMSpec):
            files |= lm_files(name, actor, features)
        else:
            files |= encoder_files(name, actor, spec, features)
    for agent in build.prompted:
        files[f"policies/{build.policy_of[agent]}.json"] = as_json(prompted_state(build.teammates[agent]))
    files["team.json"] = as_json(_about(build))
    files["standardizer.json"] = as_json(parts.statistics)
    files["golden.json"] = as_json(golden(parts.sampled))
    return write(directory, files)


def golden(episodes: Sequence[Sequence[Record]]) -> list[dict[str, Any]]:
    """What was seen and what was decided then, for the first decisions of some episodes."""
    made: list[dict[str, Any]] = []
    for records in episodes:
        seen: Observed | None = None
        for record in records:
            if isinstance(record, Observed):
                seen = record
            elif isinstance(record, Decided) and seen is not None and record.call in seen.candidates:
                made.append(_remembered(seen, record))
    return made[:GOLDEN]


def _remembered(seen: Observed, decided: Decided) -> dict[str, Any]:
    return {
        "agent": seen.agent,
        "text": seen.text,
        "mask": [int(m) for m in seen.mask],
        "action": seen.candidates.index(decided.call),
        "logp": decided.logp,
    }


def _about(build: Build) -> dict[str, Any]:
    ref = build.experiment.team
    about: dict[str, Any] = {
        "use": ref.use,
        "pettingzoo": ref.pettingzoo,
        "args": ref.args,
        "policies": {a: build.policy_of[a] for a in build.agents},
        "scripted": {a: getattr(build.experiment.policies[build.policy_of[a]], "use", "") for a in build.scripted},
    }
    if build.team is not None:
        about["team"] = build.team.name
        about["roles"] = {r.name: r.brief for r in build.team.roles}
        about["tools"] = {n: {"input": t.input_schema, "output": t.output_schema} for n, t in build.team.tools.items()}
        about["source"] = source_hash(build.team)
        about["rewards"] = [{"use": t.use, "weight": t.weight, "args": t.args} for t in build.experiment.rewards.terms]
    return about


def write_lineage(directory: Path, build: Build, state: TrainerState, run_dir: Path) -> None:
    """Say beside a version where it comes from."""
    written = {
        "experiment": build.experiment.name,
        "experiment_hash": sha256(resolved(build.experiment).encode()).hexdigest(),
        "seed": build.experiment.seed,
        "iteration": state.iteration,
        "env_steps": state.env_steps,
        "run_dir": str(run_dir),
        "folder": str(build.folder.resolve()),
        "commit": commit_of(build.folder),
        **(lineage(build.experiment.scenarios, build.recorded) if build.recorded else {}),
    }
    (directory / LINEAGE).write_text(json.dumps(written, indent=1))
