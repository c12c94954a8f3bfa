"""Events that a reader holds back: those too early for their line, and those that shall be tried again later."""

from dataclasses import dataclass, field

from runtime.bus.event import Event
from runtime.bus.intake import Entry
from runtime.store.outbox import Line

LOOK_S = 0.2
"""Pause between two looks whether the event before a parked one has come by another reader (s)."""


@dataclass(slots=True)
class Item:
    """An event that is being worked on."""

    entry: Entry
    event: Event
    again: bool = False
    """It may have been handled before."""
    replayed: bool = False
    """It was a dead letter: its place in its line is passed."""
    attempt: int = 1
    error: str = ""
    """What the last try said."""
    parked: float = 0.0
    """Since when it waits for the one before it (monotonic, s); 0: it does not."""

    @property
    def line(self) -> Line:
        """The line in which the event has its number."""
        return (self.event.correlation_id, self.event.sender, self.event.to)


@dataclass(slots=True)
class Waiting:
    """What is held back. Times are monotonic, in seconds."""

    parked: dict[Line, dict[str, Item]] = field(default_factory=dict[Line, dict[str, Item]])
    later: dict[str, tuple[float, Item]] = field(default_factory=dict[str, tuple[float, Item]])
    _looked: float = 0.0
    _freed: set[Line] = field(default_factory=set[Line])

    def __len__(self) -> int:
        return len(self.later) + sum(map(len, self.parked.values()))

    def ids(self) -> set[str]:
        """The entries that are held."""
        return {*self.later, *(i for line in self.parked.values() for i in line)}

    def park(self, item: Item, now: float) -> None:
        """Hold an event until the one before it has been had."""
        item.parked = item.parked or now
        self.parked.setdefault(item.line, {})[item.entry.id] = item

    def retry(self, item: Item, due: float) -> None:
        """Hold an event until a time."""
        self.later[item.entry.id] = (due, item)

    def moved(self, line: Line) -> None:
        """A line has moved: what is parked in it may be due."""
        if line in self.parked:
            self._freed.add(line)

    def due(self, now: float) -> list[Item]:
        """What is to be looked at now, in the order of the lines; it is held no more."""
        found = [self.later.pop(i)[1] for i, (due, _) in [*self.later.items()] if due <= now]
        if now - self._looked > LOOK_S:
            self._looked = now
            self._freed.update(self.parked)
        for line in self._freed:
            found += sorted(self.parked.pop(line, {}).values(), key=lambda i: i.event.seq)
        self._freed.clear()
        return found

    def next_s(self, now: float, most: float) -> float:
        """How long nothing is due (s), at most that long."""
        if self.parked:
            most = min(most, LOOK_S)
        return max(0.0, min([most, *(due - now for due, _ in self.later.values())]))
