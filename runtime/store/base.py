"""What both kinds of store share: transactions as functions of a connection."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal, TypeVar

from sqlalchemy.engine import Connection, Engine

from runtime.errors import RepertoryError

T = TypeVar("T")
Durability = Literal["full", "normal"]
"""``full``: what is committed survives a power cut. ``normal``: it survives any killed process, and is faster."""
WRITE_S = 30.0
"""How long a transaction may wait for its turn (s): far longer than any honest one takes."""


class StoreBusy(RepertoryError):
    """A transaction did not get its turn in time: another process holds the store, and may have been stopped."""

    def __init__(self, url: str, waited_s: float) -> None:
        super().__init__(url, waited_s)
        self.url, self.waited_s = url, waited_s

    def __str__(self) -> str:
        return f"{self.url} was busy for {self.waited_s:g} s: is a process that writes to it stopped?"


class Clash(RepertoryError):
    """Another transaction changed what this one had read; done again, it sees the change."""


class Store(ABC):
    """What must survive. Open one with ``open_store``; threads may share it, processes open their own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def url(self) -> str:
        """Where it is, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    @abstractmethod
    def submit(self, work: Callable[[Connection], T], *, durable: bool = True) -> Future[T]:
        """Have the work done in one transaction, soon; the future is done once it is durable.

        The work must do nothing but use the connection: it may be run again when the database asks for that.
        ``durable=False`` is for notes that may be lost in a power cut: nobody waits for the disk on their account.
        """

    @abstractmethod
    def write(self, work: Callable[[Connection], T], *, within_s: float = WRITE_S) -> T:
        """Do the work in one transaction, durable when this returns. What it raises undoes it and is raised here.

        Raises:
            StoreBusy: it had to wait longer than this for its turn (s), and was not begun.
        """

    def read(self, look: Callable[[Connection], T]) -> T:
        """Look at what is committed. Each statement sees the newest; writing here is not allowed."""
        with self.engine.connect() as connection:
            return look(connection)

    def wal_bytes(self) -> int:
        """The size of SQLite's write-ahead log (bytes); 0 for another database."""
        return 0

    @abstractmethod
    def close(self) -> None:
        """Finish what is waiting and close. Closing twice is no error."""
