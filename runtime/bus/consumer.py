"""A reader of one stream: its loop, its heartbeat, and what it does when Redis is away or has forgotten everything."""

import logging
import threading
import time
from dataclasses import asdict, dataclass

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from runtime.bus.batch import Reader
from runtime.bus.commit import ROLE, Seat
from runtime.bus.intake import Entry, Intake
from runtime.bus.parts import Parts
from runtime.bus.refill import refill
from runtime.bus.relay import Relay
from runtime.bus.work import Handler, Work
from runtime.errors import Fenced
from runtime.store.base import StoreBusy
from runtime.store.owners import Owner

HEARTBEATS = 5
"""Heartbeats in a lease: it outlives four that are late."""
SWEEPS = 3
"""Looks in a lease after what dead readers have left."""
AWAY_S = 0.2
"""Pause after an error of Redis or the store (s)."""
STEP_S = 0.5
"""The longest wait for an event in one step (s): shorter than the client's patience, and a stop is noticed in time."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How a reader reads."""

    owner: Owner | None = None
    """Under which ownership it writes (``EventBus.own``). None: several readers may share the group."""
    shard: int = 0
    """Which of the role's streams it reads, where there are several."""


class Consumer:
    """One reader. Call ``step`` in a loop of your own, or ``start`` a thread."""

    def __init__(self, parts: Parts, relay: Relay | None, seat: Seat, intake: Intake, handler: Handler) -> None:
        self._parts, self._intake = parts, intake
        self._work = Work(Reader(parts, seat, intake, relay), handler)
        self._drained = "0"
        """Up to which entry its own pending ones were read; empty: there are no more."""
        self._swept = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._heart: threading.Thread | None = None
        self.failure: Exception | None = None
        """What ended its thread: it was fenced."""
        self._ready = False

    @property
    def counts(self) -> dict[str, int]:
        """What it has done since it began (``work.Counts``), and how many events it holds back and has leased now."""
        return {**asdict(self._work.counts), "held": len(self._work.waiting), "leased": len(self._work.mine)}

    def step(self, block_s: float = STEP_S) -> int:
        """Wait for events, at most that long (s), and handle them; how many were handled and committed.

        Raises:
            Fenced: somebody else owns the role by now. What was read stays pending, for the owner.
        """
        self._beat()
        before = self._work.counts.handled
        try:
            self._cycle(min(block_s, STEP_S))
        except (RedisError, OSError) as error:
            self._away(error)
        except (StoreBusy, SQLAlchemyError) as error:
            _log.warning("the store is away: %s", error)
            self._forget()
        return self._work.counts.handled - before

    def start(self) -> None:
        """Read in a thread of its own until ``stop``."""
        self._thread = threading.Thread(target=self._run, name=f"bus-{self._intake.name}", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Have it stop soon, without waiting for that."""
        self._stop.set()

    def stop(self) -> None:
        """Finish the event at hand and stop. What was read and not handled stays pending under this name."""
        self.leave()
        for thread in (self._thread, self._heart):
            if thread and thread is not threading.current_thread():
                thread.join()
        self._intake.close()

    @property
    def stopped(self) -> bool:
        """Whether it reads no more."""
        return self._stop.is_set() or self.failure is not None

    def _run(self) -> None:
        try:
            while not self.stopped:
                self.step()
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to; who asks sees it
            self.failure = error
            self._stop.set()  # a heartbeat that went on would keep from the next owner what this one has read
            if not isinstance(error, Fenced):
                _log.exception("reader %s ended", self._intake.name)

    def _cycle(self, block_s: float) -> None:
        if not self._ready:
            self._intake.ensure()
            self._ready = True
        if self._drained:
            self._drain()
            return
        self._work.resume(time.monotonic())
        if time.monotonic() - self._swept > self._parts.settings.lease_s / SWEEPS:
            self._swept = time.monotonic()
            self._one_by_one(self._intake.left())
        wait_s = self._work.waiting.next_s(time.monotonic(), block_s)
        self._work.handle(self._work.take(self._intake.fresh(wait_s)))

    def _drain(self) -> None:
        """Handle what was handed to this name before."""
        entries = self._intake.own(self._drained)
        self._drained = entries[-1].id if entries else ""
        self._one_by_one(entries)

    def _one_by_one(self, entries: list[Entry]) -> None:
        """One that kills its process takes no other with it."""
        for item in self._work.take(entries):
            self._work.handle([item])

    def _away(self, error: Exception) -> None:
        if "NOGROUP" in str(error):
            self._ready = False
            refill(self._parts)
        else:
            _log.warning("reader %s: Redis is away: %s", self._intake.name, error)
            self._stop.wait(AWAY_S)
        self._forget()

    def _forget(self) -> None:
        """Nothing is certain about what was handed to this name last: ask again."""
        self._work.lost()
        self._drained = "0"
        self._stop.wait(0)

    def _beat(self) -> None:
        """Have the heartbeat going."""
        if self._heart is None:
            self._heart = threading.Thread(target=self._hearts, name=f"lease-{self._intake.name}", daemon=True)
            self._heart.start()

    def _hearts(self) -> None:
        while not self._stop.wait(self._parts.settings.lease_s / HEARTBEATS):
            try:
                self._intake.renew([*self._work.mine])
            except (RedisError, OSError):
                continue  # the reader itself sees that Redis is away


__all__ = ["ROLE", "Consumer", "Reading"]
