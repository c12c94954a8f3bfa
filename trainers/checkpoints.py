"""Checkpoints of a run: written whole or not at all, the last few kept and the best beside them."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runtime.errors import RepertoryError

STATE = "trainer.json"
ALGORITHM = "algorithm"


class NoCheckpoint(RepertoryError):
    """There is nothing to resume from, or it cannot be read."""


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
        raise NoCheckpoint(f"{path} cannot be read: {error}") from None
