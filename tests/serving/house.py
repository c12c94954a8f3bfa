"""A router and its versions in one process, without Ray Serve: real HTTP, a real store, a real Redis, real policies."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from assembly.versions import Version
from runtime.embedded import SCHEME, client_of, serve
from serving.access import Access, shared_secret
from serving.desk import Desk
from serving.http.guard import Guard
from serving.http.routes import application
from serving.openai_api.asked import Chat, Piece
from serving.openai_api.speaking import Speaker
from serving.pins import Pins
from serving.playing import Answer, Player
from serving.registry import Objects, vetted
from serving.rollout.plan import RewardRule
from serving.rollout.tables import make_tables
from serving.settings import Limits
from serving.tables import open_serving_store
from serving.versions import Versions
from tests.serving.conftest import free_port


@dataclass(frozen=True)
class House:
    """A router that answers at an address."""

    url: str
    versions: Versions
    look: Callable[[], None]
    """Has the router look for news."""


class Here:
    """Versions in this process (``serving.desk.Reach``)."""

    def __init__(self, versions: Versions, loaded: Mapping[str, Version]) -> None:
        self._players = {alias: Player(v, alias, versions.store) for alias, v in loaded.items()}
        self._speakers = {alias: Speaker(v) for alias, v in loaded.items()}

    async def turn(self, team: str, alias: str, session: str, key: str, within_s: float) -> Answer:
        """Have a version play a turn."""
        async with asyncio.timeout(within_s):
            return await asyncio.to_thread(self._players[alias].turn, session, key)

    async def say(self, team: str, alias: str, chat: Chat, within_s: float) -> AsyncGenerator[Piece]:
        """Have a version go on with a chat."""
        pieces = self._speakers[alias].said(chat)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece


@contextmanager
def house(
    directory: Path, team: str, exports: Sequence[Path], tokens: Mapping[str, str], limits: Limits | None = None
) -> Generator[House]:
    """These exports, ready, the first one the current version; ``admin`` may steer."""
    store = make_tables(open_serving_store(f"sqlite:///{directory / 'store.db'}"))
    redis = f"{SCHEME}{directory / 'redis'}"
    with serve(redis.removeprefix(SCHEME)):
        versions = Versions(store, {team: Objects(str(directory / "registry"))}, lambda: client_of(redis))
        loaded: dict[str, Version] = {}
        for export in exports:
            alias = versions.register(team, export, by="test", why="")
            versions.deploy(team, alias, by="test", why="")
            versions.settle(versions.version(team, alias), "ready", "", "test")
            loaded[alias] = vetted(export, team)
        versions.promote(team, "v1", by="test", why="")
        bounds = limits or Limits()
        pins = Pins(store, lambda: client_of(redis), bounds.idle_s)
        desk = Desk(versions, pins, Access(tokens, ["admin"], shared_secret(store)), Here(versions, loaded), bounds)
        desk.views.refresh()
        with _listening(Guard(application(desk, RewardRule()), bounds)) as url:
            yield House(url, versions, desk.views.refresh)
        store.close()


@contextmanager
def _listening(app: object) -> Generator[str]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))  # pyright: ignore[reportArgumentType]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    started = threading.Event()
    while not server.started and thread.is_alive():
        started.wait(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()
