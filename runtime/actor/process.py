"""What any agent's process has: a behaviour, a store, the right to write, a bound on memory, first and last words."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.actor.faults import Faults
from runtime.actor.memory import MemoryWatch, resident_mb
from runtime.actor.spec import AgentSpec, reference
from runtime.records import AgentStarted, AgentStopped, Record
from runtime.seams import Clock
from runtime.store import Store, history, open_store
from runtime.store.owners import Owner


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """How an agent is."""

    name: str
    pid: int
    epoch: int
    handled: int
    """Events since this process began."""
    busy_s: float
    """How long it has been at the event at hand (s); 0: at none."""
    memory_mb: float
    cold_start_ms: float
    fenced: bool
    """Somebody else is the owner by now, or it was stopped: it does nothing any more."""


class AgentProcess:
    """One agent's process, from its start to its end."""

    def __init__(self, spec: AgentSpec, clock: Clock) -> None:
        self._began = time.perf_counter()
        self.spec, self.clock = spec, clock
        self.faults = Faults(spec.faults)
        self.faults.at("start")
        self.behaviour = spec.make()
        self.store: Store | None = open_store(reference(spec.store), spec.durability) if spec.store else None
        self.owner: Owner | None = None
        self.cold_start_ms = 0.0
        self._since = 0.0
        self._watch: MemoryWatch | None = None

    @property
    def epoch(self) -> int:
        """Of its ownership; 0 without a store."""
        return self.owner.epoch if self.owner else 0

    def ready(self, claim: Callable[[], Owner] | None) -> None:
        """Become the owner, and note that the agent serves from now on."""
        self.owner = claim() if claim else None
        self.cold_start_ms = 1000 * (time.perf_counter() - self._began)
        name, role = self.spec.name, self.spec.role
        self.note(
            [
                AgentStarted(
                    correlation_id=name,
                    at=self.clock(),
                    agent=role,
                    epoch=self.epoch,
                    pid=os.getpid(),
                    cold_start_ms=self.cold_start_ms,
                )
            ]
        )
        if self.spec.memory_mb:
            self._watch = MemoryWatch(self.spec.memory_mb, self.last_words)

    def note(self, records: Sequence[Record]) -> None:
        """Keep records for good, where there is a store."""
        if self.store is not None:
            self.store.write(lambda c: history.add(c, self.spec.team, [(r, "") for r in records]))

    def last_words(self, why: str) -> None:
        """Note the end."""
        self.note([AgentStopped(correlation_id=self.spec.name, at=self.clock(), agent=self.spec.role, why=why)])

    def end(self, why: str) -> None:
        """Note the end and close the store. Ending twice is no error."""
        if self._watch:
            self._watch.stop()
        if self.store is not None:
            self.last_words(why)
            self.store.close()
            self.store = None

    def begin_event(self) -> None:
        """An event is at hand."""
        self._since = time.monotonic()

    def end_event(self) -> None:
        """None is at hand."""
        self._since = 0.0

    def health(self, handled: int, *, fenced: bool) -> Health:
        """How it is, also while it is at work."""
        since = self._since
        return Health(
            name=self.spec.name,
            pid=os.getpid(),
            epoch=self.epoch,
            handled=handled,
            busy_s=time.monotonic() - since if since else 0.0,
            memory_mb=resident_mb(),
            cold_start_ms=self.cold_start_ms,
            fenced=fenced,
        )
