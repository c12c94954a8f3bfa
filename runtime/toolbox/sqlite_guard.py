"""SQLite held to reading, and to a time: it has neither read-only users nor a statement timeout of its own."""

import sqlite3
import time
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool

STEPS = 10_000
"""Instructions of SQLite's virtual machine between two looks at the clock: well under a millisecond."""
READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
"""All that a statement that only reads does. Neither ATTACH nor PRAGMA is among it."""


def guarded(url: URL, timeout_s: float, *, writes: bool) -> Engine:
    """An engine whose connections each run for at most that long (s), and only read unless told otherwise."""
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": timeout_s})

    def opened(connection: Any, _record: object) -> None:
        until = time.monotonic() + timeout_s
        raw: sqlite3.Connection = connection
        raw.set_progress_handler(lambda: int(time.monotonic() > until), STEPS)
        if not writes:
            raw.execute("PRAGMA query_only = ON")
            raw.set_authorizer(_allowed)

    event.listen(engine, "connect", opened)
    return engine


def _allowed(action: int, _first: str | None, second: str | None, _base: str | None, _trigger: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension":
        return sqlite3.SQLITE_DENY
    if action in READS or action == sqlite3.SQLITE_TRANSACTION:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
