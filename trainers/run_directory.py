"""Run directories: made for one run, held by one process, looked over before a run goes on in them."""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from runtime.errors import RepertoryError
from trainers.checkpoints import Checkpoints

ORIGIN = "origin.txt"
"""In the run directory: the folder of the experiment file, where the user's modules may lie."""
EXPERIMENT = "experiment.yaml"
LOCK = "run.lock"
"""In the run directory: locked by the process that works there, whose id it holds. The lock goes with the process."""
PREPARED = "prepared.json"
"""In the run directory: features, first statistics and baselines."""
MOST_IN_A_SECOND = 1000
"""Runs of one experiment that may begin in one second: more are a fault of whoever starts them."""


class Unusable(RepertoryError):
    """A directory in which no run can be made or go on: which, why, and what to do."""

    def __init__(self, directory: Path, why: str) -> None:
        super().__init__(directory, why)
        self.directory, self.why = directory, why

    def __str__(self) -> str:
        return f"{self.directory}: {self.why}"


def new_directory(out: Path, name: str) -> Path:
    """Make a directory that no other run has. Raises Unusable if there can be none."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    try:
        (out / name).mkdir(parents=True, exist_ok=True)
        for n in range(MOST_IN_A_SECOND):
            directory = out / name / (stamp if n == 0 else f"{stamp}-{n}")
            with suppress(FileExistsError):
                directory.mkdir()
                return directory
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unusable(out, f"no run directory can be made there: {reason}; give another --out") from None
    raise Unusable(out / name, f"already has {MOST_IN_A_SECOND:,} runs of {stamp}")


@contextmanager
def held(directory: Path) -> Generator[None]:
    """Keep every other run out of the directory; one that nothing was written into goes again.

    Raises:
        Unusable: another process holds it, or it cannot be written to.
    """
    lock = directory / LOCK
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Unusable(directory, f"cannot be written to: {error.strerror}") from None
    try:
        _locked(directory, file)
        try:
            yield
        finally:
            _unless_used(directory)
    finally:
        os.close(file)


def _locked(directory: Path, file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
        why = f"another process (pid {holder}) is running there; wait until it is done, or stop it"
        raise Unusable(directory, why) from None
    except OSError as error:
        raise Unusable(directory, f"cannot be locked: {error.strerror}") from None
    with suppress(OSError):  # who holds it is for people to read: a full disk is told by what must be written
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)


def _unless_used(directory: Path) -> None:
    """Drop a directory that holds no run: its experiment was refused after all."""
    if [p.name for p in directory.iterdir()] == [LOCK]:
        (directory / LOCK).unlink()
        directory.rmdir()


# -- going on


def looked_over(directory: Path) -> Path:
    """The folder of the experiment file of a run that can go on. Raises Unusable where it cannot."""
    if not (directory / EXPERIMENT).is_file():
        raise Unusable(directory, f"is not a run directory: it has no {EXPERIMENT}")
    try:
        origin = (directory / ORIGIN).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        origin = ""
    except (OSError, ValueError) as error:
        raise Unusable(directory / ORIGIN, f"cannot be read: {error}") from None
    if not origin:
        remedy = "write the folder of the experiment file into it, where the team's modules are looked for"
        raise Unusable(directory / ORIGIN, f"is missing or empty; {remedy}")
    _is_json(directory / PREPARED, "delete it to measure it again (the same seed measures the same)")
    return Path(origin)


def _is_json(file: Path, remedy: str) -> None:
    """Look whether a file of the run can be read, where there is one already. Raises Unusable."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(file, f"cannot be read: {error}; {remedy}") from None


def without_damage(directory: Path) -> list[str]:
    """Set checkpoints aside that cannot be used, so that the newest good one is the last; what was done, in words.

    Raises:
        NoCheckpoint: there are some, and none of them is good.
    """
    told = Checkpoints(directory / "checkpoints", keep=1).without_damaged()
    return [f"{path} cannot be used: {why}; it is set aside, and the one before it is used" for path, why in told]
