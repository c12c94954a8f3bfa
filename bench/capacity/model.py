"""A machine as queues (simpy): parts that do one thing at a time, a store with one writer, cores that all share."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import simpy

from bench.capacity.costs import Cost

CORES, STORE, REDIS = "cores", "store's writer", "redis"
"""Names of what all parts share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """Where a session passes: a part, what it costs there, and what is waited for outside meanwhile."""

    part: str
    cost: Cost
    redis_s: float = 0.0
    """Of Redis, on the way to the next stop."""
    waits_s: float = 0.0
    """For something outside, a model's answer say, while the part does nothing else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How many there are of everything."""

    cores: int
    speed: float = 1.0
    """Of a core, in cores that the costs were measured on."""
    parts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Processes of a part that sessions are spread over; 1 where it is not named."""
    stores: int = 1
    redis: int = 1

    def more(self, name: str) -> "Layout":
        """Twice as many of that."""
        counts = {p: n * (2 if p == name else 1) for p, n in self.parts.items()}
        return replace(
            self,
            cores=self.cores * (2 if name == CORES else 1),
            parts=counts,
            stores=self.stores * (2 if name == STORE else 1),
            redis=self.redis * (2 if name == REDIS else 1),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """What came of it."""

    per_s: float
    """Sessions that ended, a second."""
    latencies_s: Sequence[float]
    used: Mapping[str, float]
    """Share of the time that each part and what is shared was at work, waiting for others left out, 0 to 1."""

    def quantile(self, q: float) -> float:
        """Of how long sessions took (s)."""
        return float(np.quantile(self.latencies_s, q))

    @property
    def fullest(self) -> str:
        """What is busy the most."""
        return max(self.used, key=lambda name: self.used[name])


class _House:
    """The queues."""

    def __init__(self, stops: Sequence[Stop], layout: Layout, chance: Random) -> None:
        layout = whole(stops, layout)
        self.env, self.layout, self.chance, self.stops = simpy.Environment(), layout, chance, stops
        make = self._several
        self.cores = simpy.Resource(self.env, capacity=layout.cores)
        self.parts = {p: make(n) for p, n in layout.parts.items()}
        self.stores, self.redis = make(layout.stores), make(layout.redis)
        self.busy_s: dict[str, float] = dict.fromkeys((*layout.parts, CORES, STORE, REDIS), 0.0)
        self.took_s: list[float] = []

    def _several(self, count: int) -> list[simpy.Resource]:
        return [simpy.Resource(self.env, capacity=1) for _ in range(count)]

    def session(self, number: int) -> Generator[Any]:
        """Pass all stops."""
        began = self.env.now
        for stop in self.stops:
            part = self.parts[stop.part]
            with part[number % len(part)].request() as place:
                yield place
                spent = yield from self._work(stop.cost.cpu_s)
                spent += yield from self._waited(stop.waits_s)
                spent += yield from self._alone(self.stores[number % len(self.stores)], STORE, stop.cost.held_s)
                spent += yield from self._waited(stop.cost.synced_s)
                self.busy_s[stop.part] += spent
            yield from self._alone(self.redis[number % len(self.redis)], REDIS, stop.redis_s)
        self.took_s.append(self.env.now - began)

    def _alone(self, of: simpy.Resource, name: str, seconds: float) -> Generator[Any, Any, float]:
        with of.request() as turn:
            yield turn
            spent = yield from self._work(seconds)
        self.busy_s[name] += spent
        return spent

    def _work(self, seconds: float) -> Generator[Any, Any, float]:
        """Take a core for so long; the time without waiting for it (s)."""
        spent = self._drawn(seconds) / self.layout.speed
        with self.cores.request() as core:
            yield core
            yield self.env.timeout(spent)
        self.busy_s[CORES] += spent
        return spent

    def _waited(self, seconds: float) -> Generator[Any, Any, float]:
        spent = self._drawn(seconds)
        yield self.env.timeout(spent)
        return spent

    def _drawn(self, mean_s: float) -> float:
        """An exponential time: cases differ, and a model without chance would flatter."""
        return self.chance.expovariate(1 / mean_s) if mean_s > 0 else 0.0

    def simulated(self) -> Simulated:
        """What came of it so far."""
        layout, lasted = self.layout, self.env.now
        counts = {**layout.parts, CORES: layout.cores, STORE: layout.stores, REDIS: layout.redis}
        used = {name: busy / lasted / counts[name] for name, busy in self.busy_s.items()}
        return Simulated(per_s=len(self.took_s) / lasted, latencies_s=self.took_s, used=used)


def at_rate(stops: Sequence[Stop], layout: Layout, rate: float, sessions: int, seed: int = 0) -> Simulated:
    """Sessions that come by chance at a rate (1/s), whoever is ready; until the last one is over."""
    house = _House(stops, layout, Random(seed))

    def coming() -> Generator[Any]:
        for number in range(sessions):
            yield house.env.timeout(house.chance.expovariate(rate))
            house.env.process(house.session(number))

    house.env.process(coming())
    house.env.run()
    return house.simulated()


def at_once(stops: Sequence[Stop], layout: Layout, window: int, sessions: int, seed: int = 0) -> Simulated:
    """So many sessions at any time, the next one as soon as one ends."""
    house = _House(stops, layout, Random(seed))
    numbers: Iterator[int] = iter(range(sessions))

    def seat() -> Generator[Any]:
        for number in numbers:
            yield house.env.process(house.session(number))

    for _ in range(window):
        house.env.process(seat())
    house.env.run()
    return house.simulated()


def whole(stops: Sequence[Stop], layout: Layout) -> Layout:
    """The layout with every part that a session passes."""
    return replace(layout, parts=dict.fromkeys((s.part for s in stops), 1) | dict(layout.parts))
