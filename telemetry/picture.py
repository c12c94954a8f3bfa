"""Learning curves as a picture, for a README or a paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from telemetry.curves import WINDOW, windowed_mean
from telemetry.run_dir import Run, read_run
from telemetry.scalars import Figure

Floats = npt.NDArray[np.float64]
POINTS = 200
"""Places on the step axis at which the seeds are averaged."""
SIZE_INCHES, DOTS_PER_INCH = (8.0, 4.5), 150
TEAMS, BASELINE = ("#3b6fb6", "#c2571a", "#3f7d3a", "#8a4fa3"), "#6b7280"


def learning_curve_png(run_dirs: Sequence[Path], path: Path) -> Path:
    """Draw return over env steps: mean over the runs (seeds), the band from the lowest to the highest, baselines.

    Raises:
        RecordLost: a directory is not a run's.
        ValueError: a run has no return yet, or the runs share no stretch of env steps.
    """
    return learning_curves_png({"": run_dirs}, path)


def learning_curves_png(groups: Mapping[str, Sequence[Path]], path: Path) -> Path:
    """The same for several groups of runs in one picture, each in a colour of its own, named in the title.

    Raises:
        RecordLost: a directory is not a run's.
        ValueError: a run has no return yet, the runs of a group share no stretch of env steps, or there are more groups
            than colours.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    if len(groups) > len(TEAMS):
        raise ValueError(f"{len(groups)} groups of runs, and {len(TEAMS)} colours")
    runs = {name: [read_run(directory) for directory in run_dirs] for name, run_dirs in groups.items()}
    picture: Any = Picture(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots()
    right = 0.0
    for (name, those), color in zip(runs.items(), TEAMS, strict=False):
        steps_p, returns_rp = over_seeds([curve(run) for run in those])
        _draw_team(axes, steps_p, returns_rp, name, color)
        right = max(right, float(steps_p[-1]))
    _label(axes, max(map(len, runs.values())), named=len(runs) > 1)
    every = [run for those in runs.values() for run in those]
    _draw_baselines(axes, {name: value for run in every for name, value in run.baselines.items()}, right)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
    return path


def curve(run: Run) -> Floats:
    """``(2, N)``: env steps, and the return in training as a windowed mean."""
    smooth = windowed_mean([r.return_mean for r in run.iterations])
    points = [(r.env_steps, value) for r, value in zip(run.iterations, smooth, strict=True) if value is not None]
    return np.array(points, dtype=np.float64).reshape(-1, 2).T


def over_seeds(curves: Sequence[Floats]) -> tuple[Floats, Floats]:
    """``(P,)`` env steps that all R curves cover, and each curve's return there, interpolated: ``(R, P)``."""
    if not curves or not all(c.shape[1] for c in curves):
        raise ValueError("a run without a single return has no learning curve")
    first, last = max(float(c[0, 0]) for c in curves), min(float(c[0, -1]) for c in curves)
    if first > last:
        raise ValueError(f"the runs share no stretch of env steps: one begins at {first:g}, another ends at {last:g}")
    steps_p = np.linspace(first, last, POINTS)
    rows: list[Floats] = [np.interp(steps_p, c[0], c[1]) for c in curves]
    return steps_p, np.stack(rows)


def _draw_team(axes: Any, steps_p: Floats, returns_rp: Floats, name: str, color: str) -> None:
    axes.plot(steps_p, returns_rp.mean(axis=0), color=color, label=name)
    axes.fill_between(steps_p, returns_rp.min(axis=0), returns_rp.max(axis=0), color=color, alpha=0.2, linewidth=0)


def _label(axes: Any, seeds: int, *, named: bool) -> None:
    about = f"mean and range of {seeds} seeds" if seeds > 1 else "one seed"
    axes.set_title(f"Return in training, {about}", loc="left", color=TEAMS[0])
    axes.set_xlabel("env steps")
    axes.set_ylabel(f"return per episode, mean of {WINDOW} iterations")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.margins(x=0.01)
    if named:
        axes.legend(loc="lower right", frameon=False)


def _draw_baselines(axes: Any, baselines: Mapping[str, Figure], right: float) -> None:
    for name, value in baselines.items():
        if value is not None:
            axes.axhline(value, color=BASELINE, linestyle="--", linewidth=1)
            axes.annotate(f"{name} {value:.2f}", (right, value), ha="right", va="bottom", color=BASELINE, size=9)
