"""A process' port, and what is looked at again and again to fill it."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from telemetry.metrics.meters import Meters
from telemetry.metrics.port import MetricsPort, reap

LOG = logging.getLogger(__name__)
LOOK_S = 2.0
"""Pause between two looks (s): shorter than anybody scrapes."""
Look = Callable[[Meters], object]
"""Puts how something is now into the instruments."""


class Watch:
    """Serves a process' instruments, and looks at what fills them until it is closed.

    Args:
        port: the wanted port; the next free one if it is taken, 0 for any.
        job: what the process is.
        targets: directory of ``file_sd`` files.
        otlp: address of a collector; None for none.
        looks: what is looked at. One that fails is said once, and tried again.
    """

    def __init__(
        self, port: int, job: str, targets: Path | None, otlp: str | None = None, looks: Sequence[Look] = ()
    ) -> None:
        self.port = MetricsPort(port, job, targets, otlp)
        self._looks, self._targets = [memory("process.memory", part=job), *looks], targets
        self._failing: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    @property
    def meters(self) -> Meters:
        """The process' instruments."""
        return self.port.meters

    def close(self) -> None:
        """Look a last time, hand the last values over, and take the process off the list of targets."""
        self._stop.set()
        self._thread.join()
        self._look()
        self.port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            self._look()
            if self._targets is not None:
                reap(self._targets)
            if self._stop.wait(LOOK_S):
                return

    def _look(self) -> None:
        for place, look in enumerate(self._looks):
            try:
                look(self.meters)
                self._failing.discard(place)
            except Exception as error:  # noqa: BLE001 - a figure that cannot be had must disturb nobody
                if place not in self._failing:
                    self._failing.add(place)
                    LOG.warning("a figure cannot be had just now; it is tried again: %r", error)


def memory(name: str, **labels: str) -> Look:
    """This process' resident memory, as that instrument."""
    process = psutil.Process()

    def look(meters: Meters) -> None:
        meters.record(name, process.memory_info().rss, **labels)

    return look


class Totals:
    """Turns totals, as parts tell them, into what counters are fed: what came since."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], float] = {}

    def record(self, meters: Meters, name: str, total: float, **labels: str) -> None:
        """Add what came since the last total; a total that fell began anew."""
        key = (name, *labels.values())
        before = self._last.get(key, 0.0)
        self._last[key] = total
        meters.record(name, total - before if total >= before else total, **labels)


def bus_look(stats: Callable[[], Mapping[str, Any]]) -> Look:
    """How a bus is doing, from what ``EventBus.stats`` tells."""
    totals = Totals()

    def look(meters: Meters) -> None:
        told = stats()
        for field in ("depth", "pending", "lag", "length"):
            for stream, value in told[field].items():
                meters.record(f"bus.{field}", value, stream=stream)
        for stream, age in told["oldest_pending_s"].items():
            meters.record("bus.oldest_pending", age, stream=stream)
        totals.record(meters, "bus.redeliveries", told["redeliveries"])
        for field in ("dead_letters", "unsent", "scheduled"):
            meters.record(f"bus.{field}", told[field])
        meters.record("store.wal", told["wal_bytes"])

    return look


def models_look(stats: Callable[[], Sequence[Mapping[str, int | str]]]) -> Look:
    """Whether models are left alone, from what ``Model.stats`` tells."""

    def look(meters: Meters) -> None:
        for told in stats():
            meters.record("model.breaker", int(told["breaker"] != "closed"), model=str(told["model"]))

    return look
