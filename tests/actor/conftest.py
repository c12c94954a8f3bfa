"""A Ray for the module, and agents that are ended whatever happens."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.actor import AgentActor, AgentSpec
from tests.actor.behaviours import Counter


@pytest.fixture
def start(ray_local: None, tmp_path: Path) -> Iterator[Callable[..., AgentActor]]:
    """``start(store="", faults=…)``: an agent in a process of its own, on a store of the test's."""
    made: list[AgentActor] = []

    def begin(**options: Any) -> AgentActor:
        spec = AgentSpec(team="shop", role="clerk", make=Counter, store=f"sqlite:///{tmp_path}/store.db")
        made.append(AgentActor.start(replace(spec, version=tmp_path.name, **options)))
        return made[-1]

    yield begin
    for actor in made:
        actor.stop(within_s=5.0)
