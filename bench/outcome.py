"""What a row gives: claims with their targets, the figures behind them, and the machine they were measured on."""

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

PACKAGES = ("ray", "torch", "numpy", "gymnasium", "pettingzoo")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One measured number beside its target."""

    what: str
    unit: str
    measured: float | None
    """None: it could not be measured, which does not meet the target."""
    target: float | None = None
    """None: told for comparison only."""
    at_least: bool = True
    """Whether the target is a lower bound; else it is an upper one."""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        if self.measured is None or math.isnan(self.measured):
            return False
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def as_json(self) -> dict[str, Any]:
        """The fields, and whether it is met."""
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one run of a row gave."""

    claims: tuple[Claim, ...]
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Everything measured, as JSON: the numbers that the claims were made from."""


def machine() -> dict[str, Any]:
    """Where it was measured. ``load_1min``: processes that wanted a core when the row began, this one included."""
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")) or None,
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version(name) for name in PACKAGES},
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a device file, read line by line
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
