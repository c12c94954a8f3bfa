"""A server: Redis, store, Ray, Serve, and the conductor that keeps on it what is written down."""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.access import token_at
from runtime.actor.spec import reference
from runtime.actor.starting import LOCAL, QUIET, start_ray
from runtime.embedded import SCHEME, client_of, connect, serve
from runtime.errors import ServiceUnavailable
from runtime.store import Store
from serving.access import make_token
from serving.registry import Objects
from serving.server.judging import judged
from serving.server.watching import watched
from serving.settings import GENERATED, Serving
from serving.tables import open_serving_store
from serving.versions import Versions

PROXY_CHECKS = {"RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "3"}
"""With Serve's own values, a killed proxy refuses connections for half a minute."""
OBJECT_STORE_BYTES = 100_000_000
"""Room for what processes pass each other: requests and answers, no arrays."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that runs."""

    url: str
    """Where it answers."""
    settings: Serving
    versions: Versions
    metrics: str
    """Where the main process' figures are."""


def versions_of(settings: Serving, store: Store) -> Versions:
    """The versions of the teams in a serving file."""
    return Versions(
        store,
        {name: Objects(team.registry) for name, team in settings.teams.items()},
        lambda: client_of(reference(settings.redis_at)),
    )


@contextmanager
def serving(settings: Serving) -> Generator[Server]:
    """A server, from here to the end of the block.

    Raises:
        ServiceUnavailable: Redis, the store, a token or Ray is missing: which, and what to do.
    """
    with ExitStack() as closing:
        settings.place.mkdir(parents=True, exist_ok=True)
        _tokens(settings)
        at = reference(settings.redis_at)
        if at.startswith(SCHEME):
            closing.enter_context(serve(at.removeprefix(SCHEME)))
        connect(at).close()
        store = open_serving_store(reference(settings.store_at))
        closing.callback(store.close)
        versions = versions_of(settings, store)
        watch = closing.enter_context(watched(settings, versions))
        closing.enter_context(_ray(settings))
        url = _http(settings)
        closing.enter_context(_conducted(settings, versions))
        closing.enter_context(judged(settings, versions))
        yield Server(url=url, settings=settings, versions=versions, metrics=watch.port.address)


def _tokens(settings: Serving) -> None:
    if not settings.http.tokens:
        make_token(Path(settings.tokens[GENERATED].removeprefix("file:")))
    for at in settings.tokens.values():
        token_at(at)


@contextmanager
def _ray(settings: Serving) -> Generator[None]:
    import ray

    os.environ.update({name: os.environ.get(name, value) for name, value in PROXY_CHECKS.items()})
    if ray.is_initialized():
        yield
        return
    try:
        start_ray(**_arguments(settings))
    except ConnectionError as error:
        at, remedy = f"ray: {settings.ray_address}", "start it, or correct `ray_address`"
        raise ServiceUnavailable(at, str(error), remedy) from None
    try:
        yield
    finally:
        stop: Any = ray.shutdown
        stop()


def _arguments(settings: Serving) -> dict[str, Any]:
    if settings.ray_address:
        return {"address": settings.ray_address, **QUIET}
    return {**LOCAL, "object_store_memory": OBJECT_STORE_BYTES}


def _http(settings: Serving) -> str:
    """Start Serve's proxies; where they answer."""
    from ray import serve as ray_serve

    host, port = settings.http.host, settings.http.port or _free_port(settings.http.host)
    options = {"host": host, "port": port, "request_timeout_s": settings.limits.run_s + 15.0}
    ray_serve.start(proxy_location="EveryNode", http_options=options, logging_config={"log_level": "WARNING"})
    return f"http://{host}:{port}"


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as free:
        free.bind((host, 0))
        return free.getsockname()[1]


@contextmanager
def _conducted(settings: Serving, versions: Versions) -> Generator[None]:
    from ray import serve as ray_serve

    from serving.server.conductor import Conductor

    conductor = Conductor(settings, versions)
    thread = threading.Thread(target=conductor.run, name="conductor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        conductor.stop()
        thread.join()
        if settings.ray_address is None:
            ray_serve.shutdown()
