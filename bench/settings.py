"""What all contestants of the speed rows are given: the same environment, features, networks, sizes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from assembly.build import Build, KeyedStandardizer
from assembly.experiment import PPO
from assembly.team_check import Known, accept
from rewards.terms import TERMS
from trainers.measure import featurizers, measure, seed_statistics
from trainers.rllib.algorithm import Seat, seats


@dataclass(frozen=True, slots=True)
class Contest:
    """An experiment, ready to be trained by anybody."""

    build: Build
    seats: Mapping[str, Seat]
    """How each policy sees, and its networks' shape."""
    standardizer: KeyedStandardizer | None

    @property
    def ppo(self) -> PPO:
        """Batch, minibatch, epochs, coefficients."""
        return self.build.experiment.ppo


@dataclass(frozen=True, slots=True)
class Lap:
    """One PPO iteration, timed."""

    env_steps: int
    sample_s: float
    learn_s: float
    total_s: float
    """All of it, also what lies between sampling and learning."""

    @property
    def per_thousand(self) -> float:
        """Seconds for 1,000 env steps: batches are not all of the same size."""
        return 1000 * self.total_s / self.env_steps


class Contestant(Protocol):
    """Somebody who trains."""

    def lap(self) -> Lap:
        """One iteration."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


Enter = Callable[[Contest, int], Contestant]
"""Makes a contestant that steps so many environments side by side."""


def contest(file: Path, overrides: Sequence[str], episodes: int) -> Contest:
    """The experiment in the file; features and reward statistics from so many random episodes."""
    build = Build(accept(file, overrides, Known(TERMS)).experiment, file.parent)
    measured = measure(build, episodes)
    standardizer = build.standardizer()
    seed_statistics(standardizer, measured)
    return Contest(build, seats(build, featurizers(build, measured)), standardizer)


def with_envs(contest: Contest, envs: int) -> Contest:
    """The same with so many environments side by side."""
    experiment: Any = contest.build.experiment
    resources = experiment.resources.model_copy(update={"envs_per_runner": envs, "env_runners": 0, "gpus": 0})
    asked = experiment.model_copy(update={"resources": resources})
    return Contest(Build(asked, contest.build.folder), contest.seats, contest.standardizer)
