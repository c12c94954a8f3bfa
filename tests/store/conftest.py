"""Stores of both kinds: SQLite in a directory of the test's own, and a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.store import Store, open_store
from tests.postgres import empty_postgres, postgres

__all__ = ["empty_postgres", "postgres"]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store's URL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("empty_postgres")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, "normal")
    yield opened
    opened.close()
