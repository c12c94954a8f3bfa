"""Exports to serve, made once, and a store with serving's tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.store import Store
from serving.tables import open_serving_store
from tests.live.versions import fresh_version


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two versions of the supply-chain team that decide differently."""
    first, second = (tmp_path_factory.mktemp("export") / "version" for _ in range(2))
    fresh_version(first, seed=0)
    fresh_version(second, seed=1)
    return first, second


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_serving_store(f"sqlite:///{tmp_path / 'store.db'}")
    yield opened
    opened.close()
