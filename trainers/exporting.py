"""From a finished run to a version: weights, how observations become features, statistics, and where it comes from."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from assembly.build import Build
from assembly.loading import resolved
from assembly.sources import source_hash
from policies.export import as_json, encoder_files, write
from trainers.checkpoints import TrainerState
from trainers.prepare import Prepared
from trainers.rllib.engine import Engine

LINEAGE = "lineage.json"
"""Beside the content, not part of it: where the version comes from."""


def export(build: Build, prepared: Prepared, engine: Engine, directory: Path) -> str:
    """Write the team as it plays now; returns the version's name, the hash of its content."""
    files: dict[str, bytes] = {}
    for name, actor in engine.actors().items():
        featurizer = prepared.featurizers[name]
        features = featurizer.features.state() if featurizer else {"kind": "flat"}
        files |= encoder_files(name, actor, engine.policies[name].spec, features)
    files["team.json"] = as_json(_about(build))
    files["standardizer.json"] = as_json(engine.standardizer_state())
    return write(directory, files)


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
    lineage = {
        "experiment": build.experiment.name,
        "experiment_hash": sha256(resolved(build.experiment).encode()).hexdigest(),
        "seed": build.experiment.seed,
        "iteration": state.iteration,
        "env_steps": state.env_steps,
        "run_dir": str(run_dir),
    }
    (directory / LINEAGE).write_text(json.dumps(lineage, indent=1))
