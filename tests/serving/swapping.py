"""Sessions played while versions are swapped and processes killed, and a checker that reads nothing but the outcome."""

import asyncio
import json
import os
import random
import signal
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

from serving import AsyncClient
from serving.server.start import Server
from tests.serving.conftest import TEAM

STEPS = 4
"""What happens in a session of this team: it is opened, and each of its three roles has a turn."""
PATIENCE_S = 120.0
"""For how long a client tries (s): longer than anything that is killed takes to come back."""
KILLED = {
    "replica": "ServeReplica:{team}-{current}:",
    "version": "ServeReplica:{team}-{current}:",
    "router": "ServeReplica:router:",
    "controller": "ServeController",
    "proxy": "ProxyActor",
}
"""What can be killed, and what its process is called. Of a ``version`` all replicas go, else one process."""


@dataclass
class Told:
    """What clients were told."""

    versions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By session."""
    turns: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """What a turn answered, by session and key."""
    failures: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each request took, with everything that was tried again."""
    retried: int = 0


class Growing:
    """A number that grows, for others to wait for."""

    def __init__(self) -> None:
        self.value = 0
        self._changed = asyncio.Condition()

    async def reached(self, value: int) -> None:
        """Wait until it is so large."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.value >= value)

    async def add(self, more: int = 1) -> None:
        """Let it grow."""
        async with self._changed:
            self.value += more
            self._changed.notify_all()


@dataclass(frozen=True)
class Storm:
    """How much happens."""

    swaps: int
    sessions: int
    every: int
    """Swaps between two steps of a session."""
    kills: Mapping[int, str]
    """What is killed before which swap."""
    seen_s: float = 0.0
    """How long to wait after a swap (s): routers have heard of it within a second, and few sessions may be faster."""

    def starts(self, index: int) -> int:
        """The swap after which a session begins: they come one after the other, so that there is always one to open."""
        room = max(self.swaps - (STEPS - 1) * self.every, 1)
        return index * room // self.sessions

    def due(self, swaps: int) -> int:
        """Steps that sessions may have made after so many swaps."""
        steps = (min((swaps - self.starts(i)) // self.every + 1, STEPS) for i in range(self.sessions))
        return sum(max(s, 0) for s in steps)


async def stormy(server: Server, token: str, storm: Storm, swap: Callable[[int], None]) -> Told:
    """Play all sessions while ``swap(number)`` is called again and again; half of what may happen has, at each."""
    told, swaps, steps = Told(), Growing(), Growing()
    async with AsyncClient(server.url, token, patience_s=PATIENCE_S) as client:
        playing = [
            asyncio.create_task(_Player(client, told, storm, swaps, steps).play(i)) for i in range(storm.sessions)
        ]
        for number in range(storm.swaps):
            before, now = storm.due(number - 1), storm.due(number)
            await asyncio.wait_for(steps.reached(before + (now - before) // 2), PATIENCE_S)
            if (what := storm.kills.get(number)) is not None:
                kill(server, what)
            await asyncio.to_thread(swap, number)
            await asyncio.sleep(storm.seen_s)
            await swaps.add()
        await swaps.add(STEPS * storm.every)
        await asyncio.gather(*playing)
        told.retried = client.retried
    return told


@dataclass(frozen=True)
class _Player:
    client: AsyncClient
    told: Told
    storm: Storm
    swaps: Growing
    steps: Growing

    async def play(self, index: int) -> None:
        try:
            await self._session(index)
        except Exception as error:  # noqa: BLE001 - it is counted, and said
            self.told.failures.append(f"session {index}: {error!r}")
            await self.steps.add(STEPS)

    async def _session(self, index: int) -> None:
        told, start = self.told, self.storm.starts(index)
        await self.swaps.reached(start)
        session = await self._timed(self.client.open(TEAM, draw={"split": "eval", "seed": 7, "index": index}))
        told.versions[session.id].add(session.version)
        for step in range(1, STEPS):
            await self.swaps.reached(start + step * self.storm.every)
            key = f"step-{step}"
            first = await self._timed(session.turn(key))
            again = await session.turn(key)  # as a client asks that did not hear the answer
            told.versions[session.id] |= {first.version, again.version}
            told.turns[session.id, key] |= {first.model_dump_json(), again.model_dump_json()}
        if not session.ended:
            told.failures.append(f"session {index} did not end")

    async def _timed(self, work: Any) -> Any:
        began = monotonic()
        result = await work
        self.told.seconds.append(monotonic() - began)
        await self.steps.add()
        return result


def swapped(server: Server, number: int) -> None:
    """The other version becomes the current one; every third time it had some new sessions before."""
    new = "v1" if server.versions.current(TEAM) == "v2" else "v2"
    if number % 3 == 1:
        server.versions.canary(TEAM, new, 0.3, by="test", why="some first")
    server.versions.promote(TEAM, new, by="test", why=f"swap {number}")


def store_of(server: Server) -> Path:
    return Path(server.settings.store_at.removeprefix("sqlite:///"))


def kill(server: Server, what: str) -> None:
    """kill -9 a process of the server's, or all of a version's."""
    pattern = KILLED[what].format(team=TEAM, current=server.versions.current(TEAM))
    found = processes(pattern)
    for pid in found if what == "version" else random.sample(found, min(1, len(found))):
        os.kill(pid, signal.SIGKILL)


def processes(pattern: str) -> list[int]:
    """The processes of this test's own Ray with such a name."""
    found: list[int] = []
    for each in psutil.Process().children(recursive=True):
        try:
            if pattern in " ".join(each.cmdline()):
                found.append(each.pid)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return sorted(found)


def faults(store: Path, told: Told, sessions: int) -> list[str]:
    """What went wrong, from what clients were told and what the file says; read without any of our own code."""
    found = list(told.failures)
    found += [f"{s} changed version: {v}" for s, v in told.versions.items() if len(v) != 1]
    found += [f"{k} had {len(a)} answers" for k, a in told.turns.items() if len(a) != 1]
    if len(told.versions) != sessions:
        found.append(f"{len(told.versions)} sessions of {sessions} were opened")
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as file:
        return found + _in_the_file(file, told)


def _in_the_file(file: sqlite3.Connection, told: Told) -> list[str]:
    hashes = dict(file.execute("SELECT alias, hash FROM serving_versions").fetchall())
    pins = dict(file.execute("SELECT session, version FROM pins").fetchall())
    turns = Counter(s for (s,) in file.execute("SELECT session FROM serving_turns"))
    found: list[str] = []
    for session, versions in told.versions.items():
        rows = file.execute("SELECT kind, body FROM history WHERE session = ? ORDER BY id", (session,)).fetchall()
        version = min(versions)
        found += [f"{session}: {what}" for what in _wrong(rows, hashes.get(version, ""))]
        if pins.get(session) != version:
            found.append(f"{session} was told {version} and is pinned to {pins.get(session)}")
        if turns[session] != STEPS - 1:
            found.append(f"{session} has {turns[session]} turns on record")
    return found


def _wrong(rows: Sequence[tuple[str, str]], content: str) -> list[str]:
    """What is wrong with a session's records."""
    kinds = Counter(kind for kind, _ in rows)
    bodies = [(kind, json.loads(body)) for kind, body in rows]
    found = [f"{kinds[k]} records {k}" for k in ("episode_opened", "episode_ended") if kinds[k] != 1]
    decided = [(b["agent"], b["turn"]) for k, b in bodies if k == "decided"]
    found += [f"decided {n} times: {d}" for d, n in Counter(decided).items() if n > 1]
    for agent in {a for a, _ in decided}:
        numbers = [n for a, n in decided if a == agent]
        if numbers != list(range(len(numbers))):
            found.append(f"{agent} decided {numbers}")
    played = {b["version"] for k, b in bodies if k == "episode_opened"}
    if played != {content}:
        found.append(f"played by {played}, not by {content}")
    return found
