"""What the parts of one bus share."""

import threading
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runtime.bus.contracts import Agreements
from runtime.bus.names import Names
from runtime.bus.scripts import Scripts
from runtime.bus.settings import BusSettings
from runtime.embedded.client import client_of
from runtime.seams import Clock
from runtime.store.base import Store

T = TypeVar("T")


@dataclass(kw_only=True)
class Parts:
    """One team's bus in one process: where it is, what it is called, how it behaves."""

    redis: str
    """What was declared: ``embedded:DIRECTORY`` or a URL."""
    client: Any
    """For commands that answer at once; threads share it."""
    store: Store | None
    """None: nothing but Redis, at-least-once, for events that may come twice."""
    names: Names
    settings: BusSettings
    agreed: Agreements
    now: Clock
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the bus stops."""

    def __post_init__(self) -> None:
        self.scripts = Scripts(self.client)

    @property
    def team(self) -> str:
        """The team's name."""
        return self.names.team

    def reader(self) -> Any:
        """A client of one's own for reading that waits: waiting readers would use up a shared pool."""
        return client_of(self.redis, max_connections=1)

    def held(self) -> Store:
        """The store, where there must be one."""
        if self.store is None:
            raise ValueError("this bus has no store: it was made for measuring, or for events that may come twice")
        return self.store

    def pause(self, seconds: float) -> None:
        """Wait, unless the bus stops."""
        self.closing.wait(seconds)
