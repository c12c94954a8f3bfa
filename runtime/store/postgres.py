"""PostgreSQL as a store: each transaction on a connection of its own; the server commits in groups by itself."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, OperationalError

from runtime.errors import ServiceUnavailable
from runtime.store.base import WRITE_S, Clash, Durability, Store, StoreBusy, T
from runtime.store.migrations import migrate

WORKERS = 4
"""Threads for transactions that nobody waits for."""
CONNECT_S = 5
"""How long connecting may take (s)."""
TRIES = 5
"""How often a transaction that met another one is tried; it was undone completely each time."""
MET = frozenset({"40001", "40P01"})
"""SQLSTATE of a serialization failure and of a deadlock."""
LOCK_MISSED = "55P03"
"""SQLSTATE of a lock that was not had in time."""
MIGRATION_LOCK = 4_719_203_815
"""The advisory lock under which tables are made: any number that other programs do not use."""


class PostgresStore(Store):
    """A database on a server, for teams that run on several machines."""

    def __init__(self, url: URL, durability: Durability = "full") -> None:
        options = (
            f"-c synchronous_commit={'on' if durability == 'full' else 'off'} -c lock_timeout={int(WRITE_S * 1e3)}"
        )
        args = {"connect_timeout": CONNECT_S, "options": options, "application_name": "repertory"}
        try:
            engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=args)
        except ImportError:
            raise ServiceUnavailable(
                url.render_as_string(), "psycopg is not installed", "pip install 'repertory[postgres]'"
            ) from None
        super().__init__(engine)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="store-writer")
        try:
            self.write(_migrate)
        except BaseException as error:
            self.close()
            if not isinstance(error, OperationalError):
                raise
            remedy = "start PostgreSQL, or correct the address, user and password in `store:`"
            raise ServiceUnavailable(self.url, " ".join(str(error.orig).split()), remedy) from None

    def submit(self, work: Callable[[Connection], T], *, durable: bool = True) -> Future[T]:
        """Do the work in a thread of the pool."""
        return self._pool.submit(self.write, work)

    def write(self, work: Callable[[Connection], T], *, within_s: float = WRITE_S) -> T:
        """Do the work, again and again while it meets other transactions."""
        for left in reversed(range(TRIES)):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except Clash:
                if not left:
                    raise
            except DBAPIError as error:
                state = _sqlstate(error)
                if state == LOCK_MISSED:
                    raise StoreBusy(self.url, within_s) from None
                if state not in MET or not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Finish what waits and close all connections."""
        self._pool.shutdown()
        self.engine.dispose()


def _migrate(connection: Connection) -> int:
    """Make the tables, one process at a time."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    return migrate(connection)


def _sqlstate(error: DBAPIError) -> Any:
    return getattr(error.orig, "sqlstate", None)
