"""Every test imports the team's modules of its own folder."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh_imports() -> Iterator[None]:
    """Forget what a test has imported from beside its file."""
    path, modules = [*sys.path], set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name in ("two_seats", "raises"):
            del sys.modules[name]
