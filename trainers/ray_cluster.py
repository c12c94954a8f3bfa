"""Ray for the length of a run: on this machine, or an existing cluster."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import ray

from assembly.training import Resources
from runtime.errors import RepertoryError

OBJECT_STORE_BYTES = 400_000_000
"""Room for batches in flight between processes; Ray's own default takes a third of the memory."""


class NoCluster(RepertoryError):
    """The declared Ray cluster does not answer."""


@contextmanager
def ray_running(asked: Resources) -> Generator[None]:
    """Ray as the file asks for it; stopped at the end if it was started here."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(**_arguments(asked))
    except ConnectionError as error:
        raise NoCluster(f"resources.ray_address: no Ray cluster answers at {asked.ray_address}: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _arguments(asked: Resources) -> dict[str, Any]:
    common: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if asked.ray_address:
        return {**common, "address": asked.ray_address}
    dashboard: dict[str, Any] = {"include_dashboard": asked.dashboard is not None}
    if asked.dashboard is not None:
        dashboard |= {"dashboard_host": asked.dashboard.host, "dashboard_port": asked.dashboard.port}
    cpus = max(os.cpu_count() or 1, 1)
    return {**common, **dashboard, "num_cpus": cpus, "object_store_memory": OBJECT_STORE_BYTES}
