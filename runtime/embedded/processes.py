"""Server processes by their id: whether one is there, whether it is ours, and how it is ended."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

from redis.exceptions import RedisError

from runtime.embedded.client import client_of
from runtime.embedded.places import Places

STOP_S = 10.0
"""How long an orderly stop may take (s) before the process is killed; what was answered is in the file all the same."""
LOOK_S = 0.01
"""Pause between two looks at a process that is ending (s)."""


def ready(places: Places) -> bool:
    """Whether the directory's server answers, with its data loaded."""
    if not places.socket.exists():
        return False
    try:
        with client_of(places.reference) as client:
            return bool(client.ping())
    except (RedisError, OSError):
        return False


def left_behind(places: Places) -> int:
    """The process id of a server that works in the directory, whoever started it; 0: there is none."""
    try:
        pid = int(places.pid.read_text(encoding="utf-8"))
        return pid if Path(f"/proc/{pid}/cwd").readlink() == places.directory and exists(pid) else 0
    except (OSError, ValueError):
        return 0


def exists(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def end(pid: int) -> None:
    """End a process that is no child of ours, by its id, and wait until it is gone."""
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    pause = threading.Event()
    while exists(pid):
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
        pause.wait(LOOK_S)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it is gone, as it should be
        os.kill(pid, number)
