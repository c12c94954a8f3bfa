"""Processes that are killed without warning, and the ledger that tells what became of the events."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from redis.exceptions import RedisError

from runtime.bus import BusSettings, Delivery, Event, EventBus, Safety
from runtime.embedded import client_of, serve
from runtime.errors import ServiceUnavailable
from runtime.records import StateChanged
from runtime.store import open_store

GROUPS = ("role", "recorder", "audit")
CHUNK = 20
"""Events published at once."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One play."""

    directory: str
    events: int
    seed: int = 1
    sessions: int = 50
    readers: int = 1
    """Processes a group."""
    pause_s: tuple[float, float] = (1.0, 4.0)
    """Shortest and longest time between two kills."""
    kills: int | None = None
    """How many there are; None: until all is done."""
    victims: tuple[str, ...] = ()
    """Who is hurt, such as ``publisher``, ``role-0``, ``redis``, ``flushall``; empty: everybody."""
    limit_s: float = 300.0
    pace_s: float = 0.0
    """The publisher's pause after each chunk, so that a fast machine is not done before the first kill."""
    depth_limit: int = 2_000
    dedupe: bool = True
    safe_trim: bool = True

    @property
    def settings(self) -> BusSettings:
        return BusSettings(
            lease_s=2.0,
            keep_s=0.2,
            straggler_s=4.0,
            verify_s=5.0,
            block_s=60.0,
            max_attempts=50,
            depth_limit=self.depth_limit,
            safety=Safety(dedupe=self.dedupe, safe_trim=self.safe_trim),
        )

    def bus(self) -> EventBus:
        """A bus, as soon as Redis answers: whoever starts a process again tries again, too."""
        store = open_store(f"sqlite:///{self.directory}/store.db", "normal")
        redis, pause = f"embedded:{self.directory}/redis", threading.Event()
        while True:
            try:
                return EventBus(redis, store, team="chaos", roles=("sink", "source"), settings=self.settings)
            except (ServiceUnavailable, RedisError):
                pause.wait(0.1)


@dataclass
class Verdict:
    """What the ledger says."""

    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.twice or self.disordered)


def publisher(plan: Plan, _: str) -> None:
    """Publish what is not published yet: its own state, committed with the events, says where it stopped."""
    bus = plan.bus()
    bus.start(keep=False)
    kept, pace = bus.state("source", "progress"), threading.Event()
    for first in range(kept.state if kept else 0, plan.events, CHUNK):
        batch = [
            Event(to="sink", sender="source", event_id=f"e{i}", correlation_id=f"s{i % plan.sessions}", payload=i)
            for i in range(first, min(plan.events, first + CHUNK))
        ]
        mark = Event(to="source", sender="source", correlation_id="progress", payload=first)
        bus.publish_all([mark, *batch], state=first + CHUNK)
        pace.wait(plan.pace_s)
    signal.pause()


def reader(plan: Plan, name: str) -> None:
    """Write into the ledger which event was had; the state counts them, so that it must not be lost either."""
    bus = plan.bus()
    bus.start(keep=False)

    def handle(delivery: Delivery) -> None:
        delivery.keep((delivery.state() or 0) + 1)
        text = f"{delivery.group} {delivery.event.payload}"
        delivery.record(StateChanged(correlation_id=delivery.session, at=0.0, agent=text, before="", after=""))

    consumer = bus.consumer(name.partition("-")[0], "sink", name, handle)
    drain = bus.consumer("role", "source", name, lambda d: None) if name.startswith("role") else None
    if drain:
        drain.start()
    while True:
        consumer.step()


def keeper(plan: Plan, _: str) -> None:
    """The upkeep."""
    plan.bus().start()
    signal.pause()


def _played(part: Callable[[Plan, str], None], plan: Plan, name: str) -> None:
    """One process of the play; what it says goes into a file."""
    log = os.open(Path(plan.directory) / f"{name}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, sys.stderr.fileno())
    part(plan, name)


class Play:
    """Runs a plan: starts the processes, kills them one after the other, and waits for the ledger to be full."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self._random = plan, Random(plan.seed)
        self._cast = {"publisher": publisher, "keeper": keeper} | {
            f"{group}-{k}": reader for group in GROUPS for k in range(plan.readers)
        }
        self._running: dict[str, BaseProcess] = {}
        self._pause = threading.Event()

    def run(self) -> Verdict:
        began, verdict = time.monotonic(), Verdict()
        with serve(Path(self.plan.directory) / "redis") as redis:
            try:
                with_groups = self.plan.bus()
                for group in GROUPS:
                    with_groups.register(group, ["sink"])
                with_groups.register("role", ["source"])
                with_groups.stop()
                for name in self._cast:
                    self._start(name)
                self._kill_until_done(redis, began, verdict)
            finally:
                for process in self._running.values():
                    process.kill()
                    process.join()
        verdict.seconds = time.monotonic() - began
        return judged(self.plan, verdict)

    def _kill_until_done(self, redis: Any, began: float, verdict: Verdict) -> None:
        while not self._done() and time.monotonic() - began < self.plan.limit_s:
            self._pause.wait(self._random.uniform(*self.plan.pause_s))
            if self.plan.kills is not None and sum(verdict.kills.values()) >= self.plan.kills:
                continue
            name = self._random.choice(self.plan.victims or (*self._cast, "redis", "flushall"))
            if name in self._cast:
                self._running[name].kill()
                self._running[name].join()
                self._start(name)
            else:
                self._hurt(redis, name)
            verdict.kills[name] = verdict.kills.get(name, 0) + 1

    def _hurt(self, redis: Any, what: str) -> None:
        """Kill Redis, or empty it."""
        with contextlib.suppress(RedisError, ProcessLookupError):  # it is just being started again
            if what == "redis":
                os.kill(redis.pid, signal.SIGKILL)
            else:
                with client_of(redis.reference) as client:
                    client.flushall()

    def _start(self, name: str) -> None:
        """From a server process that has everything imported: a new one is there at once."""
        self._running[name] = FORKS.Process(target=_played, args=(self._cast[name], self.plan, name))
        self._running[name].start()

    def _done(self) -> bool:
        """Whether the ledger has as many lines as it should, or more."""
        return sum(ledger(self.plan).values()) >= self.plan.events * len(GROUPS)


def ledger(plan: Plan) -> dict[tuple[str, str], int]:
    """How often each group had each event, read from the file without any of our code."""
    file = Path(plan.directory) / "store.db"
    rows = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)
    try:
        found = rows.execute("SELECT event_id, json_extract(body, '$.agent'), count(*) FROM history GROUP BY 1, 2")
        return {(event, agent.split()[0]): count for event, agent, count in found}
    finally:
        rows.close()


def judged(plan: Plan, verdict: Verdict) -> Verdict:
    """Hold the ledger against what was to happen."""
    counts = ledger(plan)
    for i in range(plan.events):
        for group in GROUPS:
            count = counts.get((f"e{i}", group), 0)
            if count == 0:
                verdict.lost.append(f"{group} e{i}")
            elif count > 1:
                verdict.twice.append(f"{group} e{i} {count} times")
    file = sqlite3.connect(f"file:{plan.directory}/store.db?mode=ro", uri=True)
    last: dict[tuple[str, str], int] = {}
    for session, agent in file.execute("SELECT session, json_extract(body, '$.agent') FROM history ORDER BY id"):
        group, number = agent.split()
        if int(number) < last.get((session, group), -1):
            verdict.disordered.append(f"{group} {session}: {number} after {last[session, group]}")
        last[session, group] = int(number)
    states = {(r, s): int(b) for r, s, b in file.execute("SELECT role, session, body FROM snapshots")}
    file.close()
    for group in GROUPS:
        role = "sink" if group == "role" else f"sink/{group}"
        total = sum(n for (r, _), n in states.items() if r == role)
        if total != plan.events:
            verdict.lost.append(f"{group}: the states count {total} events")
    return verdict
