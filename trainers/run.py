"""``python -m trainers.run EXPERIMENT.yaml``: from a file to a trained, evaluated, exported team.

Nothing heavy is imported until the file has been accepted: refusals and ``--help`` answer at once.
"""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assembly.problems import Refused
from runtime.errors import RepertoryError, TeamError, UserCodeError
from runtime.seams import now

if TYPE_CHECKING:
    from assembly.build import Build
    from assembly.experiment import Experiment

DONE, FAULT, REFUSED, UNAVAILABLE, GATE, AUDIT, COLLAPSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""Exit codes."""

ORIGIN = "origin.txt"
"""In the run directory: the folder of the experiment file, where the user's modules may lie."""
EXPERIMENT = "experiment.yaml"
UNAVAILABLE_FAULTS = ("NoCluster", "ServiceUnavailable", "WeightsMissing", "TeammateUnavailable", "KeyMissing")
"""Faults, by name, that mean: something declared is not there."""
EXTRAS = {
    "transformers": "lm",
    "peft": "lm",
    "gguf": "lm",
    "accelerate": "lm",
    "xgrammar": "generate",
    "mpe2": "games",
    "rlcard": "games",
}
"""Modules that come with an extra of the project."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        return _command(asked)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("interrupted before there was anything to resume", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        print(f"{error}{_remedy(error.name)}", file=sys.stderr)
        return UNAVAILABLE
    except Exception as error:  # noqa: BLE001 - the command's last word
        return _fault(error)


def _remedy(module: str | None) -> str:
    extra = EXTRAS.get((module or "").partition(".")[0])
    return f"; pip install -e '.[{extra}]'" if extra else ""


def _fault(error: Exception) -> int:
    from trainers.blame import told, whose

    theirs = whose(error)
    if isinstance(error, UserCodeError):
        print(error, file=sys.stderr)
    elif theirs is not None:
        print(f"the team's own code raised: {theirs}", file=sys.stderr)
    elif isinstance(error, RepertoryError):
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    else:
        print(f"{told(error)}\nthis is a fault of ours: the last lines above say where", file=sys.stderr)
    return UNAVAILABLE if type(error).__name__ in UNAVAILABLE_FAULTS else FAULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainers.run", description="Train the team of an experiment file, evaluate it and export it."
    )
    parser.add_argument("experiment", nargs="?", type=Path, metavar="EXPERIMENT.yaml")
    parser.add_argument("--check", action="store_true", help="do everything up to training, then stop")
    parser.add_argument("--resume", type=Path, metavar="RUN_DIR", help="go on from a run's last checkpoint")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="override a key, e.g. ppo.lr=3e-4",
    )
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where run directories go (runs)")
    return parser


def _command(asked: argparse.Namespace) -> int:
    if asked.resume is None and asked.experiment is None:
        print("give an experiment file, or --resume RUN_DIR; see --help", file=sys.stderr)
        return REFUSED
    resumed: Path | None = asked.resume
    if resumed is not None and not (resumed / EXPERIMENT).is_file():
        print(f"{resumed} is not a run directory: it has no {EXPERIMENT}", file=sys.stderr)
        return REFUSED
    file = asked.experiment or (resumed / EXPERIMENT if resumed else Path())
    folder = Path((resumed / ORIGIN).read_text().strip()) if resumed else file.resolve().parent
    return _accepted(asked, file, folder)


def _accepted(asked: argparse.Namespace, file: Path, folder: Path) -> int:
    from assembly.team_check import Known, accept
    from rewards.terms import TERMS

    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    accepted = accept(file, asked.overrides, Known(TERMS))
    _quiet()
    from assembly.build import Build
    from assembly.recorded import settled
    from trainers.session import check, resume_with, train

    experiment = settled(accepted.experiment, now())
    build = Build(experiment, folder)
    _seat_everybody(build, file)
    if asked.check:
        return check(build)
    directory: Path = asked.resume or _new_directory(asked.out, experiment.name)
    if asked.resume is None or asked.overrides:
        _write_down(experiment, directory, folder)
    interrupt = Interrupt()
    try:
        return train(build, directory, interrupt)
    except KeyboardInterrupt:
        if not any((directory / "checkpoints").glob("[0-9]*")):
            raise
        print(f"stopped at once; resume with: {resume_with(directory)}", file=sys.stderr)
        return INTERRUPTED


def _seat_everybody(build: "Build", file: Path) -> None:
    """A PettingZoo environment is made before its agents are known: only then can its file be refused for them."""
    from assembly.problems import Problem

    if build.experiment.team.pettingzoo is None:
        return
    try:
        agents, seated = build.agents, set(build.policy_of.values())
    except TeamError as error:
        raise Refused(file.name, [Problem("team", str(error))]) from None
    idle = [n for n in build.experiment.policies if n not in seated]
    if idle:
        reason = f"decides for nobody; the environment's agents are {', '.join(agents)}"
        raise Refused(file.name, [Problem(f"policies.{n}", reason) for n in idle])


def _write_down(experiment: "Experiment", directory: Path, folder: Path) -> None:
    """The experiment as it will be run. What an earlier start with other settings ended with does not stand for it."""
    from assembly.loading import resolved
    from telemetry.durable import replace_file

    directory.mkdir(parents=True, exist_ok=True)
    replace_file(directory / EXPERIMENT, resolved(experiment))
    replace_file(directory / ORIGIN, f"{folder}\n")
    for stale in ("result.json", "audit.json", "gates.json"):
        (directory / stale).unlink(missing_ok=True)


def _new_directory(out: Path, name: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for n in range(1000):
        directory = out / name / (stamp if n == 0 else f"{stamp}-{n}")
        if not directory.exists():
            return directory
    raise RepertoryError(f"{out / name} already has a thousand runs of {stamp}")


def _quiet() -> None:
    """Keep what Ray, RLlib and torch say of themselves off the terminal, and tiny networks on one thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning")
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", PendingDeprecationWarning)


class Interrupt:
    """Ctrl-C, and SIGTERM: asked after each iteration. A second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked = False
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self._ask)

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt
        self.asked = True
        print("\nstopping as soon as a checkpoint is saved (again: stop at once)", file=sys.stderr)

    def __call__(self) -> bool:
        """Whether the user wants to stop."""
        return self.asked


if __name__ == "__main__":
    sys.exit(main())
