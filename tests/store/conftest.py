"""A store in a directory of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db", "normal")
    yield opened
    opened.close()
