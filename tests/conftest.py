"""What all tests share: one thread a process, a quiet local Ray, and waiting without sleeping."""

import os
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Protocol

import pytest

from runtime.actor.starting import LOCAL, start_ray
from runtime.llm.replies import VARIABLE

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DEDUP_LOGS"] = "0"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

WAIT_S = 30.0
"""How long anything local may take (s): far more than it needs, on a machine that is busy with something else."""
POLL_S = 0.01
"""Pause between two looks (s): short beside everything that is waited for."""


class WaitUntil(Protocol):
    """``wait_until(condition, "what for")``: returns once it holds, and fails naming what did not come."""

    def __call__(self, condition: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
        """Look again and again, for at most that many seconds."""
        ...


@pytest.fixture(autouse=True)
def replies_apart() -> Iterator[None]:
    """No test meets replies that another one's models gave, also where it runs a command that keeps them."""
    os.environ.pop(VARIABLE, None)
    yield
    os.environ.pop(VARIABLE, None)


@pytest.fixture(scope="module")
def ray_local() -> Iterator[None]:
    """A Ray of this module's own with two CPUs, shut down whatever happens."""
    import ray

    start_ray(**LOCAL, num_cpus=2)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.fixture(scope="session")
def wait_until() -> WaitUntil:
    """Wait for something that another thread or process brings about."""

    def wait(condition: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
        deadline = time.monotonic() + within_s
        pause = Event()
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {within_s:g} s for {what}")
            pause.wait(POLL_S)

    return wait
