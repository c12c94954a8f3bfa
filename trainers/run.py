"""``python -m trainers.run EXPERIMENT.yaml``: from a file to a trained, evaluated, exported team.

Nothing heavy is imported until the file has been accepted: refusals and ``--help`` answer at once.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assembly.problems import Refused
from runtime.errors import RepertoryError, TeamError, UserCodeError
from runtime.llm.replies import switch
from runtime.seams import now
from trainers.checkpoints import NoCheckpoint
from trainers.interrupt import Interrupt
from trainers.run_directory import EXPERIMENT, ORIGIN, Unusable, held, looked_over, new_directory, without_damage

if TYPE_CHECKING:
    from assembly.build import Build
    from assembly.experiment import Experiment

DONE, FAULT, REFUSED, UNAVAILABLE, GATE, AUDIT, COLLAPSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""Exit codes."""

OUT = Path("runs")
"""Where run directories go."""
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
    switch(on=not asked.no_cache)
    try:
        return _command(asked)
    except (Refused, Unusable, NoCheckpoint) as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("interrupted before there was anything to resume", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        print(f"{error}{_remedy(error.name)}", file=sys.stderr)
        return UNAVAILABLE
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the command's last word, not that of the user's code
        return _fault(error)


def _remedy(module: str | None) -> str:
    extra = EXTRAS.get((module or "").partition(".")[0])
    return f"; pip install -e '.[{extra}]'" if extra else ""


def _fault(error: BaseException) -> int:
    from assembly.blame import disk, told, whose

    theirs = whose(error)
    if isinstance(error, UserCodeError):
        print(error, file=sys.stderr)
    elif theirs is not None:
        print(f"the team's own code raised: {theirs}", file=sys.stderr)
    elif (trouble := disk(error)) is not None:
        print(f"{trouble}; mend that, then go on with --resume RUN_DIR", file=sys.stderr)
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
    parser.add_argument(
        "--no-cache", action="store_true", help="ask frozen teammates and judges again what they were asked before"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"where run directories go ({OUT}); with --check: keep one"
    )
    return parser


def _command(asked: argparse.Namespace) -> int:
    if asked.resume is None and asked.experiment is None:
        print("give an experiment file, or --resume RUN_DIR; see --help", file=sys.stderr)
        return REFUSED
    if asked.resume is not None and asked.out is not None:
        print("--out has no effect with --resume, which goes on where the run is; drop one", file=sys.stderr)
        return REFUSED
    if asked.resume is None:
        return _accepted(asked, asked.experiment, asked.experiment.resolve().parent)
    resumed: Path = asked.resume
    folder = looked_over(resumed)
    return _accepted(asked, asked.experiment or resumed / EXPERIMENT, folder)


def _accepted(asked: argparse.Namespace, file: Path, folder: Path) -> int:
    from assembly.team_check import Known, accept
    from rewards.terms import TERMS
    from trainers.doctor import all_there

    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    experiment = accept(file, asked.overrides, Known(TERMS)).experiment
    if not all_there(file, asked.overrides, asked.resume or asked.out or OUT):
        return UNAVAILABLE
    if asked.check and asked.out is None:
        return _checked(experiment, file, folder)
    directory: Path = asked.resume or new_directory(asked.out or OUT, experiment.name)
    with held(directory):
        for told in without_damage(directory):
            print(told, file=sys.stderr)
        return _run_in(directory, experiment, asked, file, folder)


def _checked(experiment: "Experiment", file: Path, folder: Path) -> int:
    """Check, and keep nothing."""
    from tempfile import TemporaryDirectory

    build = _built(experiment, file, folder)
    from trainers.session import check

    Interrupt()
    with TemporaryDirectory() as scratch:
        return check(build, Path(scratch))


def _run_in(directory: Path, experiment: "Experiment", asked: argparse.Namespace, file: Path, folder: Path) -> int:
    """Train in a directory that this process holds, or check there."""
    from assembly.cases import taken_along

    build = _built(taken_along(experiment, directory), file, folder)
    from trainers.session import check, resume_with, train

    if asked.resume is None or asked.overrides:
        _write_down(build.experiment, directory, folder)
    interrupt = Interrupt()
    try:
        return check(build, directory) if asked.check else train(build, directory, interrupt)
    except KeyboardInterrupt:
        begun = any((directory / "checkpoints").glob("[0-9]*"))
        told = "stopped at once; resume with" if begun else "stopped before the first checkpoint; begin again with"
        print(f"{told}: {resume_with(directory)}", file=sys.stderr)
        return INTERRUPTED


def _built(experiment: "Experiment", file: Path, folder: Path) -> "Build":
    _quiet()
    from assembly.build import Build
    from assembly.recorded import settled

    build = Build(settled(experiment, now()), folder)
    _seat_everybody(build, file)
    return build


def _seat_everybody(build: "Build", file: Path) -> None:
    """A PettingZoo environment is made before its agents are known: only then can its file be refused for them."""
    from assembly.problems import Problem

    if build.experiment.team.pettingzoo is None:
        return
    try:
        agents, seated = build.agents, set(build.policy_of.values())
    except TeamError as error:
        raise Refused(file.name, [Problem("team", str(error))]) from None
    idle = f"decides for nobody; the environment's agents are {', '.join(agents)}"
    problems = [Problem(f"policies.{n}", idle) for n in build.experiment.policies if n not in seated]
    env = build.env("train")
    for name in build.learned:
        own = [a for a in agents if build.policy_of[a] == name]
        unlike = [a for a in own if _spaces(env, a) != _spaces(env, own[0])]
        if unlike:
            reason = f"{own[0]} and {', '.join(unlike)} see or do different things: one network cannot play both"
            problems.append(Problem(f"policies.{name}", reason))
    if problems:
        raise Refused(file.name, problems)


def _spaces(env: Any, agent: str) -> tuple[Any, Any]:
    """What an agent sees and does."""
    return env.observation_space(agent), env.action_space(agent)


def _write_down(experiment: "Experiment", directory: Path, folder: Path) -> None:
    """The experiment as it will be run. What an earlier start with other settings ended with does not stand for it."""
    from assembly.loading import resolved
    from telemetry.durable import replace_file

    replace_file(directory / EXPERIMENT, resolved(experiment))
    replace_file(directory / ORIGIN, f"{folder}\n")
    for stale in ("result.json", "audit.json", "gates.json"):
        (directory / stale).unlink(missing_ok=True)


def _quiet() -> None:
    """Keep what Ray, RLlib and torch say of themselves off the terminal, and tiny networks on one thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning")
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", PendingDeprecationWarning)


if __name__ == "__main__":
    sys.exit(main())
