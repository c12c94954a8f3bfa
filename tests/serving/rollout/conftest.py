"""A store with the rollouts' tables, and sessions in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.store import Store, open_store
from serving.rollout.tables import make_tables
from tests.postgres import empty_postgres, postgres

__all__ = ["empty_postgres", "postgres"]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store, of both kinds."""
    sqlite = request.param == "sqlite"
    opened = open_store(
        f"sqlite:///{tmp_path}/store.db" if sqlite else request.getfixturevalue("empty_postgres"), "normal"
    )
    yield make_tables(opened)
    opened.close()
