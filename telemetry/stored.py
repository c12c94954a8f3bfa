"""A store that is there already, opened to be read."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import ServiceUnavailable
from runtime.store import Store, open_store

SQLITE = "sqlite:///"


@contextmanager
def stored(url: str) -> Generator[Store]:
    """The store, until the end of the block. Raises ServiceUnavailable where it is not there: none is made."""
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).is_file():
        raise ServiceUnavailable(url, "there is no such file", "name the store that the team printed when it started")
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()
