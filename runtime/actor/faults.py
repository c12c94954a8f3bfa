"""Faults on purpose: what an agent's process can suffer, at named points, so that tests can watch it recover."""

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from runtime.actor.spec import Fault
from runtime.seams import sleep


class Faults:
    """Those of one process; usually none."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)

    def at(self, point: str) -> bool:
        """Let happen what is to happen here; True where what is committed next shall be damaged."""
        damage = False
        for fault in self._faults:
            if fault.at == point and _first(fault):
                damage = damage or _happens(fault)
        return damage


def _first(fault: Fault) -> bool:
    """Whether it has not happened yet; from now on it has."""
    if not fault.marker:
        return True
    try:
        Path(fault.marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _happens(fault: Fault) -> bool:
    if fault.kind == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault.kind == "hang":
        threading.Event().wait(fault.seconds or None)
    elif fault.kind == "slow":
        sleep(fault.seconds)
    return fault.kind == "corrupt"
