"""Checkpoints of a run: written whole or not at all, the last few kept and the best beside them."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from runtime.errors import RepertoryError

STATE = "trainer.json"
ALGORITHM = "algorithm"
CONTENTS = "contents.json"
"""In a checkpoint: the SHA-256 of each of its other files, so that a damaged one is known before it is used."""
DAMAGED = "damaged-"
"""What the name of a checkpoint begins with that cannot be used."""


class NoCheckpoint(RepertoryError):
    """There is nothing to resume from, or it cannot be read."""


class Damaged(NoCheckpoint):
    """A checkpoint whose files are not those that were written: which, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path} cannot be read: {self.why}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainerState:
    """What the trainer itself remembers from one iteration to the next."""

    iteration: int = 0
    env_steps: int = 0
    seconds: float = 0.0
    """Training time so far, s."""
    best_score: float | None = None
    best_iteration: int | None = None
    cost_usd: float = 0.0
    tokens: int = 0
    rollbacks: int = 0
    lr_scale: float = 1.0
    """What rollbacks have left of the learning rate."""
    missing: int = 0
    """Episodes with a missing reward."""
    episodes: int = 0
    trouble: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the collapse alarm watches grow worse, and the iteration in which it began."""
    watched: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the audit's watcher remembers."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint on disk."""

    path: Path
    state: TrainerState

    @property
    def algorithm(self) -> Path:
        """RLlib's part, an absolute path as RLlib wants it."""
        return (self.path / ALGORITHM).resolve()


class Checkpoints:
    """The checkpoints of a run directory.

    Args:
        directory: ``checkpoints/`` of the run.
        keep: how many of the last are kept; the best by held-out score is kept beside them.
    """

    def __init__(self, directory: Path, keep: int) -> None:
        self.directory, self.keep = directory, keep

    def save(self, state: TrainerState, write: Callable[[Path], Any]) -> Checkpoint:
        """Write a checkpoint; ``write`` is given the directory for the algorithm. Cut short, it leaves no trace."""
        self.directory.mkdir(parents=True, exist_ok=True)
        target = self.directory / f"{state.iteration:06d}"
        unfinished = self.directory / f".{state.iteration:06d}.{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        write((unfinished / ALGORITHM).resolve())
        (unfinished / STATE).write_text(json.dumps(asdict(state), indent=1))
        (unfinished / CONTENTS).write_text(json.dumps(_contents(unfinished), indent=1))
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
        self._prune(state.best_iteration)
        return Checkpoint(target, state)

    def _prune(self, best: int | None) -> None:
        every = list(self)
        for checkpoint in every[: -self.keep]:
            if checkpoint.state.iteration != best:
                shutil.rmtree(checkpoint.path)
        for unfinished in self.directory.glob(".[0-9]*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def __iter__(self) -> Iterator[Checkpoint]:
        """Complete checkpoints, the oldest first."""
        for path in sorted(self.directory.glob("[0-9]*")):
            yield Checkpoint(path, _state(path))

    def last(self) -> Checkpoint | None:
        """The newest; None where there is none yet. Raises NoCheckpoint if one cannot be read."""
        found = list(self)
        return found[-1] if found else None

    def without_damaged(self) -> list[tuple[Path, str]]:
        """Set aside whatever cannot be used, newer than the last good one: each with the reason.

        Raises:
            NoCheckpoint: there are some, and none of them is good. They are left as they are.
        """
        bad: list[tuple[Path, str]] = []
        for path in sorted(self.directory.glob("[0-9]*"), reverse=True):
            try:
                check(path)
            except Damaged as error:
                bad.append((path, error.why))
            else:
                break
        else:
            if bad:
                told = "; ".join(f"{path.name}: {why}" for path, why in bad)
                remedy = "delete the folder to begin the run again"
                raise NoCheckpoint(f"no checkpoint in {self.directory} can be used ({told}); {remedy}")
        for path, _ in bad:
            aside = path.with_name(f"{DAMAGED}{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
        return bad

    def back_to(self, good: Checkpoint, state: TrainerState) -> None:
        """Forget every checkpoint after a good one, and let that one remember how the run came back to it."""
        for checkpoint in self:
            if checkpoint.state.iteration > good.state.iteration:
                shutil.rmtree(checkpoint.path)
        unfinished = good.path / f".{STATE}"
        unfinished.write_text(json.dumps(asdict(state), indent=1))
        unfinished.replace(good.path / STATE)


def _state(path: Path) -> TrainerState:
    try:
        return TrainerState(**json.loads((path / STATE).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(path, f"{STATE}: {error}") from None


def check(path: Path) -> None:
    """Look whether a checkpoint is as it was written. Raises Damaged if it is not."""
    _state(path)
    try:
        written: Any = json.loads((path / CONTENTS).read_text())
        found = _contents(path)
    except FileNotFoundError:
        written, found = {}, {}  # it was written before checkpoints had a list of their contents
    except (OSError, ValueError) as error:
        raise Damaged(path, f"{CONTENTS}: {error}") from None
    if not isinstance(written, dict):
        raise Damaged(path, f"{CONTENTS}: is no list of files")
    for name, digest in cast("dict[str, Any]", written).items():
        if found.get(name) != digest:
            raise Damaged(path, f"{name} is {'not what was written' if name in found else 'missing'}")


def _contents(path: Path) -> dict[str, str]:
    """The digest of every file of a checkpoint, but for those that are written again later."""
    files = (p for p in sorted(path.rglob("*")) if p.is_file() and p.name not in (STATE, CONTENTS))
    return {str(p.relative_to(path)): _digest(p) for p in files}


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
