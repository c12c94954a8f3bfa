"""Opening a store by its URL."""

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from runtime.errors import ServiceUnavailable
from runtime.store.base import Durability, Store, StoreBusy
from runtime.store.migrations import StoreTooNew
from runtime.store.postgres import PostgresStore
from runtime.store.sqlite import SqliteStore

__all__ = ["Store", "StoreBusy", "StoreTooNew", "open_store"]
KNOWN = "sqlite:///run/store.db or postgresql://user@host/database"


def open_store(url: str, durability: Durability = "full") -> Store:
    """Open a store, making its tables or bringing them to this program's version.

    Args:
        url: ``sqlite:///PATH`` (four slashes for an absolute path) or ``postgresql://USER:PASSWORD@HOST/DATABASE``.
        durability: ``full`` survives a power cut, ``normal`` any killed process.

    Raises:
        ServiceUnavailable: the URL is of no kind that is known here, or the database cannot be reached.
        StoreTooNew: a later program has written it.
    """
    parsed = _parsed(url)
    kind = parsed.get_backend_name()
    if kind == "sqlite" and parsed.database and parsed.database != ":memory:":
        return SqliteStore(parsed, durability)
    if kind == "postgresql":
        return PostgresStore(parsed, durability)
    raise ServiceUnavailable(url, "is no store that is known here", f"write {KNOWN}")


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError:
        raise ServiceUnavailable(url, "is no URL", f"write {KNOWN}") from None
