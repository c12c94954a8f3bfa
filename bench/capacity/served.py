"""Sessions over HTTP: a client, Serve's proxy, a router, a version's process, and the store."""

import os
import tempfile
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.capacity.clock import HELD_S, SYNCED_S, TURNS, clock_writes, totals
from bench.capacity.costs import Cost, Lap, descendants, lap
from bench.capacity.version import untrained
from serving.client import Client

TEAM = "supply_chain"
ALONE, TOGETHER, CLIENTS = 20, 80, 8
"""Sessions one after the other, sessions by so many clients at once."""
UP_S = 180.0
"""How long a server may take until it answers (s)."""
CLIENT, PROXY, ROUTER, SEAT = "client", "proxy", "router", "version"
CALLED = {PROXY: "ray::ProxyActor", ROUTER: "ray::ServeReplica:router", SEAT: "ray::ServeReplica:supply_chain"}
"""How processes of a part begin to be called."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What was measured."""

    costs: Mapping[str, Cost]
    """Of one request, by part."""
    requests: float
    """Of a session: its opening, and its turns."""
    alone: Lap
    together: Lap


def measure(*, quick: bool = False) -> Served:
    """Play the laps. ``quick``: a handful of sessions, which measures nothing."""
    few, many = (3, 6) if quick else (ALONE, TOGETHER)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        untrained(folder / "version")
        wrote = _written(folder, few)
        turns: list[int] = []
        with _up(folder) as client:
            _lap(client, range(few), 1, {}, turns)  # waits until everybody is there, and warms up
            parts = _parts()
            alone = _lap(client, range(few), 1, parts, turns)
            together = _lap(client, range(few, few + many), CLIENTS, parts, turns)
    requests = 1 + sum(turns) / len(turns)
    return Served(costs=_costs(alone, requests, wrote), requests=requests, alone=alone, together=together)


def _parts() -> dict[str, list[int]]:
    """The processes of each part. Raises LookupError where there is none."""
    processes = descendants()
    parts = {part: [p for p, called in processes.items() if called.startswith(s)] for part, s in CALLED.items()}
    if missing := [part for part, pids in parts.items() if not pids]:
        raise LookupError(f"no process of {', '.join(missing)} among {sorted(processes.values())}")
    return {**parts, CLIENT: [os.getpid()]}


def _costs(alone: Lap, requests: float, wrote: Cost) -> dict[str, Cost]:
    """Of a request. What a turn's commit takes is the version's own; a router commits openings only."""
    cpu = {part: s / alone.sessions / requests for part, s in alone.cpu_s.items()}
    costs = {part: Cost(cpu_s=cpu[part]) for part in (CLIENT, PROXY, ROUTER)}
    seat = Cost(cpu_s=max(0.0, cpu[SEAT] - wrote.held_s), held_s=wrote.held_s, synced_s=wrote.synced_s)
    return {**costs, SEAT: seat}


def _written(folder: Path, sessions: int) -> Cost:
    """What a turn takes of the store, one after the other in this process."""
    from assembly.versions import load_version
    from runtime.store import pins, snapshots
    from runtime.store.snapshots import Saving
    from serving.pins import STATE
    from serving.playing import Player, first_state
    from serving.tables import open_serving_store

    end = clock_writes(folder / "player.npy")
    store = open_serving_store(f"sqlite:///{folder / 'player.db'}")
    player = Player(load_version(folder / "version"), "v1", store)

    def opened(name: str, number: int) -> None:
        def work(connection: Any) -> None:
            pins.pin(connection, TEAM, name, "v1", 1.0)
            state = first_state({"draw": {"split": "train", "seed": 7, "index": number}})
            saving = Saving(team=TEAM, role=STATE, session=name, state=state)
            snapshots.save(connection, [saving], 1.0)

        store.write(work)

    before = totals(folder / "player.npy")
    for number in range(sessions):
        opened(f"s{number}", number)
        turn: dict[str, Any] = {"ended": False}
        while not turn["ended"]:
            turn = player.turn(f"s{number}", os.urandom(8).hex())["turn"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    wrote = totals(folder / "player.npy") - before
    store.close()
    end()
    return Cost(cpu_s=0.0, held_s=wrote[HELD_S] / wrote[TURNS], synced_s=wrote[SYNCED_S] / wrote[TURNS])


@contextmanager
def _up(folder: Path) -> Generator[Client]:
    """A server with the version ready, and a client of it."""
    from runtime.access import token_at
    from serving.server.start import serving
    from serving.settings import Serving

    settings = Serving.model_validate(
        {
            "teams": {TEAM: {"registry": str(folder / "registry"), "current": "v1"}},
            "directory": str(folder / "served"),
            "http": {"port": 0},
            "telemetry": {"port": 0},
            "routers": 1,
        }
    )
    with serving(settings) as server:
        alias = server.versions.register(TEAM, folder / "version", by="bench", why="")
        server.versions.deploy(TEAM, alias, by="bench", why="")
        with Client(server.url, token_at(settings.tokens["admin"]), patience_s=UP_S) as client:
            yield client


def _lap(client: Client, numbers: range, clients: int, parts: Mapping[str, list[int]], turns: list[int]) -> Lap:
    def one(number: int) -> float:
        began = perf_counter()
        session = client.open(TEAM, draw={"split": "train", "seed": 7, "index": number})
        turns.append(sum(1 for _ in session))
        return perf_counter() - began

    with lap(len(numbers), parts) as measured, ThreadPoolExecutor(clients) as pool:
        took = list(pool.map(one, numbers))
    measured.latencies_s = took
    return measured
