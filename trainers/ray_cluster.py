"""Ray for the length of a run: on this machine, or an existing cluster."""

import logging
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import ray

from assembly.training import Resources
from runtime.actor.starting import LOCAL, QUIET, start_ray
from runtime.errors import RepertoryError
from runtime.llm.replies import OFF, VARIABLE, switched_off
from runtime.signals import handlers_kept

OBJECT_STORE_BYTES = 400_000_000
"""Room for batches in flight between processes; Ray's own default takes a third of the memory."""

KNOCK_S = 5.0
"""How long a cluster may take to accept a connection, s."""


class NoCluster(RepertoryError):
    """The declared Ray cluster does not answer."""


@contextmanager
def ray_running(asked: Resources) -> Generator[None]:
    """Ray as the file asks for it; stopped at the end if it was started here."""
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # RLlib sets it when it is imported
    if ray.is_initialized():
        yield
        return
    _answers(asked.ray_address)
    _start(asked)
    try:
        yield
    finally:
        with handlers_kept():
            stop: Any = ray.shutdown
            stop()


def _start(asked: Resources) -> None:
    try:
        start_ray(**_arguments(asked))
    except ConnectionError as error:
        raise NoCluster(_remedy(asked.ray_address, str(error))) from None


def _answers(address: str | None) -> None:
    """Knock at ``host:port`` first: Ray itself goes on trying for minutes. Raises NoCluster."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()
    except OSError as error:
        raise NoCluster(_remedy(address, str(error))) from None


def _remedy(address: str | None, why: str) -> str:
    start = "start one with `ray start --head`, or leave the key out to use this machine"
    return f"resources.ray_address: no Ray cluster answers at {address} ({why}); {start}"


def _told() -> dict[str, Any]:
    """What the processes of a cluster do not inherit and have to know."""
    return {"runtime_env": {"env_vars": {VARIABLE: OFF}}} if switched_off() else {}


def _arguments(asked: Resources) -> dict[str, Any]:
    if asked.ray_address:
        return {**QUIET, "address": asked.ray_address, **_told()}
    dashboard: dict[str, Any] = {"include_dashboard": asked.dashboard is not None}
    if asked.dashboard is not None:
        dashboard |= {"dashboard_host": asked.dashboard.host, "dashboard_port": asked.dashboard.port}
    cpus = max(os.cpu_count() or 1, 1)
    return {**LOCAL, **dashboard, "num_cpus": cpus, "object_store_memory": OBJECT_STORE_BYTES}
