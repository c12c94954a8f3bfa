"""The event bus beside bare redis-py with the same batching, and how long a hop takes at a steady rate."""

import multiprocessing
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options
from runtime.bus import BusSettings, Delivery, Event, EventBus
from runtime.embedded import client_of, serve

EVENTS, ROUNDS = 10_000, 5
"""Events of a lap, and laps of each contestant; they take turns."""
WRITE, READ = 16, 64
"""Events added and read at once, by all contestants."""
FLYING = 16
"""Batches that wait for the disk at once, where there is a store: they share its syncs."""
SESSIONS = 100
RATE, SECONDS, PUBLISHERS = 1_000, 20, 10
"""Events a second, for how long (s), from how many threads: a live team's agents publish one by one."""
OFF, ON, HOP_MS = 0.5, 0.25, 15.0
"""At least so much of bare redis-py's throughput with the store off and on; at most so long a hop at the 99th
percentile (ms)."""
SETTINGS = BusSettings(depth_limit=1_000_000, batch=READ)
ROLES = ("sink", "source")
PROCESSES = multiprocessing.get_context("forkserver")
PAYLOAD = {"case": "late shipment", "notes": ["the carrier says Tuesday", "customs has it"], "cost_usd": 1.25}
Part = Callable[[str, str, int, Connection], None]


def bus(options: Options) -> Outcome:
    """Throughput in pairs, then the hop."""
    events, rounds = (500, 1) if options.quick else (EVENTS, ROUNDS)
    contestants: dict[str, tuple[Part, Part]] = {
        "bare": (bare_writer, bare_reader),
        "store_off": (writer_off, reader_off),
        "store_on": (writer_on, reader_on),
    }
    laps: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, (writes, reads) in contestants.items():
            rate = events / lap(writes, reads, events)
            if turn:
                laps[name].append(round(rate))
    hop = hops(1 if options.quick else SECONDS)
    share = {n: statistics.median(a / b for a, b in zip(laps[n], laps["bare"], strict=True)) for n in laps}
    claims = (
        Claim(what="throughput, store off", unit="of bare redis-py", measured=share["store_off"], target=OFF),
        Claim(what="throughput, everything on", unit="of bare redis-py", measured=share["store_on"], target=ON),
        Claim(
            what=f"hop at {RATE:,} events/s, 99th percentile, from before publishing until the handler has it",
            unit="ms",
            measured=hop["p99_ms"],
            target=HOP_MS,
            at_least=False,
        ),
    )
    return Outcome(claims=claims, figures={"events_per_s": laps, "hop": hop})


def lap(writes: Part, reads: Part, events: int) -> float:
    """The time (s) from the first event written until the last one is read, by two processes on a fresh server."""
    with tempfile.TemporaryDirectory() as directory, serve(Path(directory) / "redis") as server:
        reader, told = _process(reads, server.reference, directory, events)
        told.recv()
        writer, at = _process(writes, server.reference, directory, events)
        began, ended = at.recv(), told.recv()
        at.send("read")
        for process in (writer, reader):
            process.join()
        return ended - began


def hops(seconds: int) -> dict[str, Any]:
    """How long hops take (ms) at the steady rate, everything on."""
    with tempfile.TemporaryDirectory() as directory, serve(Path(directory) / "redis") as server:
        reader, told = _process(reader_hops, server.reference, directory, RATE * seconds)
        told.recv()
        writer, at = _process(writer_hops, server.reference, directory, RATE * seconds)
        took_ms: list[float] = told.recv()
        rate = at.recv()
        for process in (writer, reader):
            process.join()
    cuts = statistics.quantiles(took_ms, n=1000)
    figures = {
        "p50_ms": cuts[499],
        "p90_ms": cuts[899],
        "p99_ms": cuts[989],
        "p999_ms": cuts[998],
        "max_ms": max(took_ms),
    }
    return {k: round(v, 2) for k, v in figures.items()} | {"events": len(took_ms), "events_per_s": round(rate)}


def _process(part: Part, redis: str, directory: str, events: int) -> tuple[BaseProcess, Connection]:
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=part, args=(redis, f"sqlite:///{directory}/store.db", events, theirs))
    process.start()
    return process, ours


def bare_writer(redis: str, _: str, events: int, told: Connection) -> None:
    """Pipelined XADD."""
    client = client_of(redis)
    told.send(time.time())
    for first in range(0, events, WRITE):
        pipeline = client.pipeline(transaction=False)
        for n in range(first, min(events, first + WRITE)):
            pipeline.xadd("bare", _event(n).fields())
        pipeline.execute()
    told.recv()


def bare_reader(redis: str, _: str, events: int, told: Connection) -> None:
    """XREADGROUP and XACK."""
    client = client_of(redis)
    client.xgroup_create("bare", "role", "0", mkstream=True)
    told.send("ready")
    seen = 0
    while seen < events:
        for _stream, entries in client.xreadgroup("role", "me", {"bare": ">"}, count=READ, block=1000):
            client.xack("bare", "role", *(entry for entry, _ in entries))
            seen += len(entries)
    told.send(time.time())


def writer_off(redis: str, _: str, events: int, told: Connection) -> None:
    """The bus without a store."""
    _write(EventBus(redis, None, team="bench", roles=ROLES, settings=SETTINGS), events, told)


def writer_on(redis: str, store: str, events: int, told: Connection) -> None:
    """The bus with everything on."""
    made = EventBus(redis, store, team="bench", roles=ROLES, settings=SETTINGS)
    made.start()
    _write(made, events, told)


def reader_off(redis: str, _: str, events: int, told: Connection) -> None:
    """A reader without a store."""
    _read(EventBus(redis, None, team="bench", roles=ROLES, settings=SETTINGS), events, told)


def reader_on(redis: str, store: str, events: int, told: Connection) -> None:
    """A reader that commits before it acknowledges."""
    _read(EventBus(redis, store, team="bench", roles=ROLES, settings=SETTINGS), events, told)


def _event(n: int) -> Event:
    return Event(
        to="sink", sender="source", event_id=f"event-{n}", correlation_id=f"session-{n % SESSIONS}", payload=PAYLOAD,
        timestamp=time.time(),
    )  # fmt: skip


def _write(made: EventBus, events: int, told: Connection) -> None:
    told.send(time.time())
    flying: deque[Future[Any]] = deque()
    for first in range(0, events, WRITE):
        batch = [_event(n) for n in range(first, min(events, first + WRITE))]
        if made.store is None:
            made.publish_all(batch)
            continue
        flying.append(made.publish_soon(batch))
        if len(flying) > FLYING:
            flying.popleft().result()
    for one in flying:
        one.result()
    told.recv()
    made.stop()


def _read(made: EventBus, events: int, told: Connection) -> None:
    made.start(keep=False)
    consumer = made.consumer("role", "sink", "sink-0", lambda delivery: None)
    consumer.step(0.0)
    told.send("ready")
    seen = 0
    while seen < events:
        seen += consumer.step()
    told.send(time.time())
    made.stop()


def writer_hops(redis: str, store: str, events: int, told: Connection) -> None:
    """Threads that publish at a steady rate, one event at a time."""
    made = EventBus(redis, store, team="bench", roles=ROLES, settings=SETTINGS)
    made.start()
    share, every_s = events // PUBLISHERS, PUBLISHERS / RATE
    began = time.time()

    def steadily(number: int) -> None:
        pause = Flag()
        for n in range(share):
            due = began + n * every_s + number * every_s / PUBLISHERS
            pause.wait(max(0.0, due - time.time()))
            event = Event(to="sink", sender="source", correlation_id=f"s{number}-{n % SESSIONS}", payload=PAYLOAD)
            made.publish(event)

    threads = [Thread(target=steadily, args=(number,)) for number in range(PUBLISHERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.send(events / (time.time() - began))
    made.stop()


def reader_hops(redis: str, store: str, events: int, told: Connection) -> None:
    """A reader that looks at the clock."""
    made = EventBus(redis, store, team="bench", roles=ROLES, settings=SETTINGS)
    took_ms: list[float] = []

    def handle(delivery: Delivery) -> None:
        took_ms.append((time.time() - delivery.event.timestamp) * 1e3)

    made.start(keep=False)
    consumer = made.consumer("role", "sink", "sink-0", handle)
    consumer.step(0.0)
    told.send("ready")
    while len(took_ms) < events:
        consumer.step()
    told.send(took_ms)
    made.stop()
