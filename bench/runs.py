"""Training as a user does it: the command, in a process of its own, and what it left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RepertoryError
from telemetry.metrics_file import read_metrics
from telemetry.run_dir import METRICS, RESULT_FILE
from telemetry.scalars import RESULT, IterationReport, RunResult

ROOT = Path(__file__).parents[1]
SHORT = (
    "stop.iterations=2",
    "scenarios.eval.count=8",
    "ppo.train_batch_size=128",
    "ppo.minibatch_size=64",
    "ppo.num_epochs=1",
    "evaluation.role_swap=false",
    "resources.envs_per_runner=4",
)
"""What makes any experiment tiny."""


class RunFailed(RepertoryError):
    """A training command ended without a result."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished run."""

    result: RunResult
    iterations: Sequence[IterationReport]
    directory: Path
    seconds: float
    """Wall-clock time of the whole command: start, training, evaluation, export."""


def train(file: Path, overrides: Sequence[str], out: Path, *, quick: bool = False) -> Trained:
    """Run ``python -m trainers.run`` on the file. Raises RunFailed where it leaves no result."""
    settings = [*overrides, *(SHORT if quick else ())]
    command = [sys.executable, "-m", "trainers.run", str(file), "--out", str(out.resolve())]
    for each in settings:
        command += ["--set", each]
    before = set(out.glob(f"*/*/{RESULT_FILE}"))
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    found = set(out.glob(f"*/*/{RESULT_FILE}")) - before
    if not found:
        raise RunFailed(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    directory = found.pop().parent
    result = RESULT.validate_json((directory / RESULT_FILE).read_bytes())
    return Trained(result, read_metrics(directory / METRICS), directory, seconds)


def told(trained: Trained) -> dict[str, object]:
    """A run's figures as JSON."""
    r = trained.result
    return {
        "seed": r.seed,
        "status": r.status,
        "iterations": r.iterations,
        "env_steps": r.env_steps,
        "training_s": round(r.seconds, 1),
        "command_s": round(trained.seconds, 1),
        "score": r.score,
        "return": r.eval.return_mean if r.eval else None,
        "return_ci95": list(r.eval.return_ci95) if r.eval and r.eval.return_ci95 else None,
        "episodes": r.eval.episodes if r.eval else 0,
        "baselines": dict(r.baselines),
        "curve": [(i.env_steps, round(i.seconds, 1), i.evaluation.score) for i in trained.iterations if i.evaluation],
    }
