"""SQLite as a store: WAL, one writer thread that commits for all who wait, and a lock file between processes."""

import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection

from runtime.store.base import WRITE_S, Durability, Store, StoreBusy, T
from runtime.store.migrations import migrate

GROUP = 256
"""Transactions committed together at most: bounds how long the first of them waits."""
BUSY_MS = 30_000
"""How long SQLite itself waits for a lock (ms): only a foreign program can hold one, ours wait at the lock file."""
AUTOCHECKPOINT_PAGES = 1000
"""WAL pages after which a commit copies them into the database: 4 MB of 4 kB pages, SQLite's own default."""
WAL_LIMIT = 64 * 2**20
"""The WAL's size (bytes) above which the writer empties it by force, however long readers have been looking."""
CHECKPOINT_S = 1.0
"""Pause between two forced checkpoints (s), since readers may keep one from getting on."""


@dataclass(slots=True)
class _Job:
    work: Callable[[Connection], Any]
    done: Future[Any]
    durable: bool = True
    result: Any = None
    failure: Exception | None = None

    def tell(self) -> None:
        """Let whoever waits know how it ended."""
        if self.failure is None:
            self.done.set_result(self.result)
        else:
            self.done.set_exception(self.failure)


class SqliteStore(Store):
    """A file that any number of processes of this machine open."""

    def __init__(self, url: URL, durability: Durability = "full") -> None:
        path = Path(url.database or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"timeout": BUSY_MS / 1e3}))
        event.listen(self.engine, "connect", _prepare)
        self._durable = durability == "full"
        self._wal = path.with_name(path.name + "-wal")
        self._lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._forced = 0.0
        self._writer = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._writer.start()
        try:
            self.write(migrate)
        except BaseException:
            self.close()
            raise

    def submit(self, work: Callable[[Connection], T], *, durable: bool = True) -> Future[T]:
        """Hand the work to the writer thread."""
        done: Future[T] = Future()
        with self._wake:
            if self._closing:
                raise RuntimeError("the store is closed")
            self._jobs.append(_Job(work, done, durable))
            self._wake.notify()
        return done

    def write(self, work: Callable[[Connection], T], *, within_s: float = WRITE_S) -> T:
        """Have the work done, and wait for it."""
        done = self.submit(work)
        try:
            return done.result(within_s)
        except FutureTimeout:
            if done.cancel():
                raise StoreBusy(self.url, within_s) from None
            return done.result()

    def wal_bytes(self) -> int:
        """The size of the write-ahead log (bytes)."""
        try:
            return self._wal.stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Finish what waits, end the writer thread, close all connections."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._writer.is_alive():
            self._writer.join()
            os.close(self._lock)
            self.engine.dispose()

    def _run(self) -> None:
        with self.engine.connect() as connection:
            while self._waiting():
                with self._turn():
                    jobs = self._taken()
                    _commit(connection, jobs)
                    self._bound(connection)
                self._sync(jobs)
                for job in jobs:
                    job.tell()

    def _waiting(self) -> bool:
        """Wait for work; False when there is none and never will be."""
        with self._wake:
            self._wake.wait_for(lambda: self._jobs or self._closing)
            return bool(self._jobs)

    def _taken(self) -> list[_Job]:
        """All that wait now, since the lock is held now."""
        with self._wake:
            jobs = [self._jobs.popleft() for _ in range(min(GROUP, len(self._jobs)))]
        return [job for job in jobs if job.done.set_running_or_notify_cancel()]

    @contextmanager
    def _turn(self) -> Generator[None]:
        """This process's turn to write. A lock file wakes the next one at once; SQLite itself would sleep in steps."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _sync(self, jobs: list[_Job]) -> None:
        """Have what was committed survive a power cut, before anybody is told; others write in the meantime.

        In WAL mode a commit is an append to the WAL: once that file is on the disk, so is every commit in it.
        """
        if not self._durable or not any(job.durable for job in jobs):
            return
        try:
            file = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as error:
            for job in jobs:
                job.failure = job.failure or error

    def _bound(self, connection: Connection) -> None:
        if self.wal_bytes() > WAL_LIMIT and time.monotonic() - self._forced > CHECKPOINT_S:
            self._forced = time.monotonic()
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()


def _prepare(connection: Any, _: object) -> None:
    """What every connection is told when it is made. NORMAL: the writer syncs the WAL itself, after its turn."""
    for line in (
        f"busy_timeout={BUSY_MS}",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"wal_autocheckpoint={AUTOCHECKPOINT_PAGES}",
        f"journal_size_limit={WAL_LIMIT}",
    ):
        connection.execute(f"PRAGMA {line}").close()


def _commit(connection: Connection, jobs: list[_Job]) -> None:
    """Do all the work in one transaction, each in a part of its own that can fail alone."""
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        if len(jobs) == 1:
            jobs[0].result = jobs[0].work(connection)
        else:
            for job in jobs:
                _do(connection, job)
        connection.exec_driver_sql("COMMIT")
    except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
        if connection.connection.dbapi_connection.in_transaction:  # pyright: ignore
            connection.exec_driver_sql("ROLLBACK")
        for job in jobs:
            job.failure = error


def _do(connection: Connection, job: _Job) -> None:
    connection.exec_driver_sql("SAVEPOINT part")
    try:
        job.result = job.work(connection)
    except Exception as error:  # noqa: BLE001 - it is raised where the work was asked for
        job.failure = error
        connection.exec_driver_sql("ROLLBACK TO part")
    connection.exec_driver_sql("RELEASE part")
