"""A real Valkey for the module, emptied before each test; buses that stop with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.bus import BusSettings, EventBus
from runtime.embedded import EmbeddedRedis, connect, serve
from tests.postgres import empty_postgres, postgres

__all__ = ["empty_postgres", "postgres"]

QUICK = BusSettings(lease_s=1.0, retry_s=0.01, keep_s=0.05, straggler_s=0.3, verify_s=0.5, park_s=0.5)
"""Everything that takes seconds takes fractions of one."""
MakeBus = Callable[..., EventBus]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with serve(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(server: EmbeddedRedis) -> Iterator[Any]:
    """A client of the server, which is empty."""
    client = connect(server.reference)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def make_bus(server: EmbeddedRedis, redis: Any, tmp_path: Path) -> Iterator[MakeBus]:
    """``make_bus(settings=…, agreed=…)``: a bus of team ``shop``; all of a test's share one store."""
    made: list[EventBus] = []

    def make(store: Any = f"sqlite:///{tmp_path}/store.db", **options: Any) -> EventBus:
        options = {"team": "shop", "roles": ("ear", "voice", "caller"), "settings": QUICK, **options}
        made.append(EventBus(server.reference, store, **options))
        return made[-1]

    yield make
    for bus in made:
        bus.stop()


@pytest.fixture
def bus(make_bus: MakeBus) -> EventBus:
    """A bus that sends and does its upkeep."""
    made = make_bus()
    made.start()
    return made
