"""A run's TensorBoard: opened where the run goes on, closed with the settings that runs are ranked by."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from assembly.build import Build
from telemetry.metrics_file import read_metrics
from telemetry.run_dir import METRICS
from telemetry.tensorboard import TensorBoardLog
from trainers.checkpoints import TrainerState
from trainers.listeners import Panel
from trainers.prepare import Prepared


def panel_of(build: Build, directory: Path, prepared: Prepared, resumed: TrainerState | None) -> Panel | None:
    """The run's panel, which goes on where a resumed run does; None where the file wants none."""
    if not build.experiment.telemetry.tensorboard:
        return None
    past = [r for r in read_metrics(directory / METRICS) if resumed and r.iteration <= resumed.iteration]
    log = TensorBoardLog(
        directory / "tensorboard",
        baselines=prepared.compared.returns,
        resumed_at=resumed.env_steps if resumed else None,
        past=past,
    )
    return Panel(log)


def settings(build: Build) -> dict[str, float | str | bool]:
    """What a reader may want to rank runs by, under the experiment file's keys."""
    found = build.experiment.model_dump(mode="json", include={"seed", "team", "policies", "ppo", "rewards"})
    return {k: v if isinstance(v, float | int | str | bool) else str(v) for k, v in _leaves("", found) if v is not None}


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in cast("dict[str, Any]", value).items():
            yield from _leaves(f"{key}.{name}" if key else name, part)
    else:
        yield key, value
