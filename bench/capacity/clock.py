"""How long processes hold SQLite's one place to write, told by each of them as it goes."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from runtime.store.sqlite import SqliteStore

TURNS, HELD_S, SYNCED_S = range(3)
"""Places of a process' totals: turns at the lock, CPU time while it was held (s), time that the disk took (s)."""


@dataclass(frozen=True, slots=True)
class Clocked:
    """Makes what another maker makes, in a process whose writes are timed."""

    make: Callable[[], Any]
    file: Path

    def __call__(self) -> Any:
        """Time the process, then make."""
        clock_writes(self.file)
        return self.make()


def clock_writes(file: Path) -> Callable[[], None]:
    """Add up from now on what this process writes, in a file that others may read meanwhile; returns what ends it."""
    added: Any = np.lib.format.open_memmap(file, mode="w+", dtype=np.float64, shape=(3,))
    turn, sync = SqliteStore._turn, SqliteStore._sync

    @contextmanager
    def timed_turn(store: SqliteStore) -> Generator[None]:
        with turn(store):
            began = time.thread_time()
            yield
            added[TURNS] += 1
            added[HELD_S] += time.thread_time() - began

    def timed_sync(store: SqliteStore, jobs: Any) -> None:
        began = time.perf_counter()
        sync(store, jobs)
        added[SYNCED_S] += time.perf_counter() - began

    def end() -> None:
        SqliteStore._turn, SqliteStore._sync = turn, sync

    SqliteStore._turn, SqliteStore._sync = timed_turn, timed_sync  # pyright: ignore
    return end


def totals(file: Path) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """What a process has added up so far."""
    return np.array(np.load(file, mmap_mode="r"))
