"""The command in this process, on the module's Ray, and one whole run of the little shop."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assembly.build import Build
from assembly.team_check import Known, accept
from assembly.training import Resources
from rewards.terms import TERMS
from tests.trainers.commands import HERE, SHOP, Command, Ran, in_process
from trainers.ray_cluster import ray_running


@pytest.fixture(scope="module")
def ray_local() -> Iterator[None]:
    """Ray as the command starts it, for all of a module's runs."""
    with ray_running(Resources()):
        yield


@pytest.fixture
def command(tmp_path: Path, ray_local: None) -> Command:
    """``command("ppo.lr=1e-3", file=…, resume=…)``."""
    return lambda *args, **options: in_process(tmp_path, *args, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, ray_local: None) -> Ran:
    """The little shop's run, undisturbed."""
    return in_process(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def whole_build() -> Iterator[Build]:
    """The little shop's parts."""
    path = [*sys.path]
    yield Build(accept(SHOP, [], Known(TERMS)).experiment, HERE)
    sys.path[:] = path
