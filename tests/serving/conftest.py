"""Exports to serve, made once; a store with serving's tables; a real server on a free port."""

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtime.store import Store
from serving import Client
from serving.server.start import Server, serving
from serving.settings import Serving
from serving.tables import open_serving_store
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version

TEAM = "supply_chain"
UP_S = 240.0
"""How long a server or version may take to be ready (s): Ray alone takes half a minute on a machine that is busy."""


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two versions of the supply-chain team that decide differently."""
    first, second = (tmp_path_factory.mktemp("export") / "version" for _ in range(2))
    fresh_version(first, seed=0)
    fresh_version(second, seed=1)
    return first, second


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_serving_store(f"sqlite:///{tmp_path / 'store.db'}")
    yield opened
    opened.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def settings_at(directory: Path, **more: Any) -> Serving:
    """A serving file's content, with everything in one directory."""
    return Serving.model_validate(
        {
            "teams": {TEAM: {"registry": str(directory / "registry"), "current": "v1"}},
            "directory": str(directory / "serving"),
            "http": {"port": 0},
            **more,
        }
    )


@contextmanager
def serving_two(directory: Path, exports: tuple[Path, Path], wait_until: WaitUntil, **more: Any) -> Generator[Server]:
    """A server with v1 as the current version and v2 ready, and tokens for ``admin``, ``ada`` and ``bob``."""
    tokens = {name: f"env:{name.upper()}_TOKEN" for name in ("admin", "ada", "bob")}
    os.environ.update({f"{name.upper()}_TOKEN": f"{name}-token-0123456789" for name in tokens})
    settings = settings_at(directory, **{"http": {"port": 0, "tokens": tokens}, **more})
    with serving(settings) as server:
        for export in exports:
            alias = server.versions.register(TEAM, export, by="test", why="")
            server.versions.deploy(TEAM, alias, by="test", why="")
        wait_until(lambda: ready(server), "both versions to be ready", UP_S)
        wait_until(lambda: answers(server), "the router to be ready", UP_S)
        yield server


def ready(server: Server, team: str = TEAM) -> bool:
    known = server.versions.known(team)
    assert not [v.reason for v in known if v.state == "failed"]
    return all(v.state == "ready" for v in known) and bool(server.versions.seated(team))


def answers(server: Server) -> bool:
    import httpx2

    try:
        return httpx2.get(f"{server.url}/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def client_of(server: Server, name: str = "ada", **more: Any) -> Client:
    return Client(server.url, f"{name}-token-0123456789", **more)
