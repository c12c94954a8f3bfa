"""What is measured of a part, and of many sessions at once."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import psutil


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one session costs one part, s."""

    cpu_s: float
    """Of a core, while nobody else has to wait for it but the part's own next session."""
    held_s: float = 0.0
    """Of a core, while it is the store's only writer."""
    synced_s: float = 0.0
    """That the disk takes, in which others may write."""

    @property
    def own_s(self) -> float:
        """All of it: what a part that does one thing at a time is taken for."""
        return self.cpu_s + self.held_s + self.synced_s


@dataclass(kw_only=True)
class Lap:
    """Sessions that were played."""

    sessions: int
    seconds: float = 0.0
    latencies_s: Sequence[float] = ()
    """From a session's opening until its end is heard."""
    cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU time of each part's processes."""
    others: float = 0.0
    """Cores that the rest of the machine was busy with meanwhile."""

    @property
    def per_s(self) -> float:
        """Sessions a second."""
        return self.sessions / self.seconds

    @property
    def median_s(self) -> float:
        """The usual session."""
        return median(self.latencies_s)

    def as_json(self) -> dict[str, Any]:
        """What is kept of it."""
        return {
            "sessions": self.sessions,
            "per_s": self.per_s,
            "median_ms": 1e3 * self.median_s,
            "p95_ms": 1e3 * float(np.quantile(self.latencies_s, 0.95)),
            "cpu_ms": {name: 1e3 * s / self.sessions for name, s in self.cpu_s.items()},
            "cores_of_others": self.others,
        }


@contextmanager
def lap(sessions: int, parts: Mapping[str, Sequence[int]]) -> Generator[Lap]:
    """Watch the processes of each part while the sessions are played in the block."""
    measured = Lap(sessions=sessions)
    before, busy, began = _cpu(parts), _busy_s(), perf_counter()
    yield measured
    measured.seconds = perf_counter() - began
    after = _cpu(parts)
    measured.cpu_s = {name: after[name] - before[name] for name in parts}
    measured.others = max(0.0, (_busy_s() - busy - sum(measured.cpu_s.values())) / measured.seconds)


def _cpu(parts: Mapping[str, Sequence[int]]) -> dict[str, float]:
    return {name: sum(_of(pid) for pid in pids) for name, pids in parts.items()}


def _of(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _busy_s() -> float:
    """CPU time of all processes of the machine so far."""
    times = psutil.cpu_times()
    return times.user + times.system + times.nice + times.softirq + times.irq


def descendants() -> dict[int, str]:
    """Processes below this one, by what they are called."""
    found = psutil.Process(os.getpid()).children(recursive=True)
    named: dict[int, str] = {}
    for process in found:
        try:
            named[process.pid] = " ".join(process.cmdline()) or process.name()
        except psutil.Error:
            continue
    return named
