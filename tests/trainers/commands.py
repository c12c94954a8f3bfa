"""The command of the trainer, run in this process or in one of its own, and what it left behind."""

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.signals import handlers_kept
from trainers.run import main

HERE = Path(__file__).parent
SHOP = HERE / "little_shop.yaml"
QUICK = ("evaluation.every=100", "evaluation.role_swap=false", "scenarios.eval.count=5", "telemetry.tensorboard=false")
"""Leaves out what a test does not look at."""
PASSING = ("seconds", "steps_per_second", "memory_mb", "timers")
"""Figures of an iteration that no two runs share."""


@dataclass(frozen=True)
class Ran:
    """What the command left behind."""

    code: int
    out: str
    err: str
    directory: Path | None

    @property
    def result(self) -> dict[str, Any]:
        assert self.directory, self.err
        return json.loads((self.directory / "result.json").read_text())

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The iterations' figures, but for times."""
        assert self.directory, self.err
        lines = (self.directory / "metrics.jsonl").read_text().splitlines()
        return [{k: v for k, v in json.loads(line).items() if k not in PASSING} for line in lines]


Command = Callable[..., Ran]


def in_process(out: Path, *args: str, file: Path = SHOP, resume: Path | None = None) -> Ran:
    """The command in this process; its signal handlers and its quietness end with it."""
    told, faults, path = io.StringIO(), io.StringIO(), [*sys.path]
    asked = ["--resume", str(resume)] if resume else [str(file), "--out", str(out)]
    sets = [part for a in args for part in ([a] if a.startswith("--") else ["--set", a])]
    with handlers_kept(), warnings.catch_warnings(), redirect_stdout(told), redirect_stderr(faults):
        try:
            code = main([*asked, *sets])
        finally:
            sys.path[:] = path
    runs = sorted(p.parent for p in out.glob("*/*/experiment.yaml"))
    return Ran(code, told.getvalue(), faults.getvalue(), resume or (runs[-1] if runs else None))


def started(*args: str | Path) -> "subprocess.Popen[str]":
    """The command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "trainers.run", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
