"""Versions are swapped under load while processes are killed: no session changes version, no turn fails or doubles."""

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.server.start import Server
from tests.conftest import WaitUntil
from tests.serving.conftest import serving_two
from tests.serving.swapping import STEPS, Storm, Told, faults, store_of, stormy, swapped

TOKEN = "ada-token-0123456789"


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, exports: tuple[Path, Path], wait_until: WaitUntil
) -> Iterator[Server]:
    with serving_two(tmp_path_factory.mktemp("swapped"), exports, wait_until) as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_fifty_swaps_two_hundred_sessions(server: Server) -> None:
    """Random kill -9 of replicas, whole versions, routers, the controller and the proxy, seeded."""
    chance = random.Random(6)
    kinds = ["replica", "version", "router", "controller", "replica", "router", "version", "proxy"]
    kills = dict(zip(sorted(chance.sample(range(2, 48), len(kinds))), chance.sample(kinds, len(kinds)), strict=True))
    storm = Storm(swaps=50, sessions=200, every=12, kills=kills)
    told = asyncio.run(stormy(server, TOKEN, storm, lambda n: swapped(server, n)))
    assert faults(store_of(server), told, storm.sessions) == []
    assert len(told.turns) == storm.sessions * (STEPS - 1)


def test_the_checker_can_fail(tmp_path: Path) -> None:
    """A session that changed version, a turn that happened twice, one that is missing: each is found."""
    told = Told()
    told.versions["a"] = {"v1", "v2"}
    told.versions["b"] = {"v1"}
    told.turns["b", "step-1"] = {"x", "y"}
    store = tmp_path / "store.db"
    with sqlite3.connect(store) as file:
        file.executescript(
            "CREATE TABLE serving_versions (alias, hash); CREATE TABLE pins (session, version);"
            "CREATE TABLE serving_turns (session); CREATE TABLE history (id INTEGER PRIMARY KEY, session, kind, body);"
        )
        file.execute("INSERT INTO serving_versions VALUES ('v1', 'hash-1')")
        file.execute("INSERT INTO pins VALUES ('b', 'v2')")
        opened = '{"version": "hash-2"}'
        twice = '{"agent": "triage", "turn": 0}'
        for kind, body in (("episode_opened", opened), ("decided", twice), ("decided", twice)):
            file.execute("INSERT INTO history (session, kind, body) VALUES ('b', ?, ?)", (kind, body))
    said = faults(store, told, 3)
    for what in (
        "a changed version", "had 2 answers", "2 sessions of 3", "decided 2 times", "0 records episode_ended",
        "is pinned to v2", "0 turns on record", "played by {'hash-2'}",
    ):  # fmt: skip
        assert any(what in line for line in said), what
