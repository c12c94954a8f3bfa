"""Sessions on the live runtime: a client, three roles in processes of their own, the bus and the store."""

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from threading import Event
from time import perf_counter
from typing import Any

from assembly.stage_live import Place, Stage, _Waiting, agent_specs
from assembly.versions import Version
from bench.capacity.clock import HELD_S, SYNCED_S, Clocked, clock_writes, totals
from bench.capacity.costs import Cost, Lap, descendants, lap
from bench.capacity.version import untrained
from runtime.actor import hosting
from runtime.types import Scenario

ALONE, TOGETHER = 40, 150
"""Sessions one after the other, from which costs are taken, and sessions at once, which they must foretell."""
WINDOW = 64
"""Sessions that are open at once."""
LOAD, PACED_S = 0.5, 10.0
"""Share of the machine's throughput at which sessions come by chance, and for how long (s)."""
REDIS, CLIENT = "redis", "client"


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """What was measured."""

    costs: Mapping[str, Cost]
    """Of one session, by part, in the order in which it passes them; Redis is passed with each."""
    roles: tuple[str, ...]
    alone: Lap
    together: Lap
    paced: Lap
    rate: float
    """Sessions a second that were opened in the paced lap."""
    decisions: float
    """Of a session."""


class _Ends(_Waiting):
    """Notes when sessions end."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[str, float] = {}

    def end(self, session: str, **how: Any) -> None:
        """A session is over."""
        self.at[session] = perf_counter()
        super().end(session, **how)


class TimedStage(Stage):
    """A stage that knows how long each session took."""

    def __init__(self, place: Place, version: Version) -> None:
        super().__init__(place, version)
        self._waiting = self._ends = _Ends()
        self._began: dict[str, float] = {}

    def open(self, scenario: Scenario, session: str = "") -> str:
        """Open it."""
        began = perf_counter()
        name = super().open(scenario, session)
        self._began[name] = began
        return name

    def taken(self) -> list[float]:
        """How long those that ended since the last look took (s)."""
        took = [self._ends.at[s] - began for s, began in self._began.items()]
        self._began = {}
        return took


def measure(*, quick: bool = False) -> Live:
    """Play the laps. ``quick``: a handful of sessions, which measures nothing."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _measured(Path(folder), *((4, 8, 1.0) if quick else (ALONE, TOGETHER, PACED_S)))


def _measured(folder: Path, few: int, many: int, paced_s: float) -> Live:
    version, place = untrained(folder / "version"), Place.under(folder / "live")
    roles = version.team.turns.order
    files = {name: folder / f"{name}.npy" for name in (CLIENT, *roles)}
    specs = [
        replace(spec, make=Clocked(spec.make, files[role]))
        for role, spec in agent_specs(place, folder / "version", version).items()
    ]
    with ExitStack() as closing:
        closing.callback(clock_writes(files[CLIENT]))
        stage = closing.enter_context(TimedStage(place, version))
        pids = closing.enter_context(hosting(specs))
        server = [pid for pid, name in descendants().items() if "valkey" in name or "redis-server" in name]
        if not server:
            raise LookupError(f"no Redis among {sorted(descendants().values())}")
        parts = {CLIENT: [os.getpid()], **{role: [pid] for role, pid in pids.items()}, REDIS: server}
        drawn = cases(version)
        _lap(stage, drawn, few, 1, parts)  # warms up
        before = {name: totals(file) for name, file in files.items()}
        alone = _lap(stage, drawn, few, 1, parts)
        wrote = {name: totals(file) - before[name] for name, file in files.items()}
        together = _lap(stage, drawn, many, WINDOW, parts)
        rate = LOAD * together.per_s
        count = max(4, int(rate * paced_s))
        paced = _lap(stage, _by_chance(drawn, rate), count, count, parts)
        decisions = _decisions(stage)
    costs = {name: _cost(alone, name, wrote.get(name)) for name in (CLIENT, *roles, REDIS)}
    return Live(costs=costs, roles=roles, alone=alone, together=together, paced=paced, rate=rate, decisions=decisions)


def cases(version: Version) -> Iterator[Scenario]:
    """Cases without end, always the same ones."""
    generate = version.team.generate
    assert generate is not None
    number = 0
    while True:
        yield generate("train", 7, number)
        number += 1


def _by_chance(cases: Iterator[Scenario], rate: float) -> Generator[Scenario]:
    """Cases that come at that rate (1/s), independently of each other and of whether anybody is ready."""
    chance, pause, due = Random(0), Event(), perf_counter()
    for case in cases:
        due += chance.expovariate(rate)
        pause.wait(max(0.0, due - perf_counter()))
        yield case


def _lap(stage: TimedStage, cases: Iterator[Scenario], count: int, window: int, parts: Mapping[str, list[int]]) -> Lap:
    with lap(count, parts) as measured:
        ended = list(stage.run((next(cases) for _ in range(count)), window=window))
    assert len(ended) == count
    measured.latencies_s = stage.taken()
    return measured


def _cost(alone: Lap, name: str, wrote: Any) -> Cost:
    cpu = alone.cpu_s[name] / alone.sessions
    if wrote is None:
        return Cost(cpu_s=cpu)
    held, synced = wrote[HELD_S] / alone.sessions, wrote[SYNCED_S] / alone.sessions
    return Cost(cpu_s=max(0.0, cpu - held), held_s=held, synced_s=synced)


def _decisions(stage: TimedStage) -> float:
    """Of a session, on average."""
    from runtime.records import Decided, EpisodeOpened
    from runtime.store import history

    store = stage.bus.store
    assert store is not None
    records = [n.record for n in store.read(lambda c: history.after(c, 0, 10_000_000))]
    opened = sum(isinstance(r, EpisodeOpened) for r in records)
    return sum(isinstance(r, Decided) for r in records) / opened
