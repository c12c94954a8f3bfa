"""Panels as a dashboard draws them, from what Prometheus answered, over iterations in the place of time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLOURS = ("#3b6fb6", "#c2571a", "#3f7d3a", "#8a4fa3")


def _name(labels: Mapping[str, str]) -> str:
    return f"held out, {labels['player']}" if "player" in labels else labels.get("agent_id") or "training"


def draw(panels: Mapping[str, list[dict[str, Any]]], iteration: Mapping[float, int], mark: int, path: Path) -> Path:
    """Write the picture.

    Args:
        panels: each panel's series by its title.
        iteration: which iteration it was, by moment (Unix time, s).
        mark: the iteration of the dashed line.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture: Any = Figure(figsize=(11, 6), dpi=130, layout="constrained")
    FigureCanvasAgg(picture)
    grid = picture.subplots(2, -(-len(panels) // 2)).flat
    for axes, (title, series) in zip(grid, panels.items(), strict=False):
        for colour, each in zip(COLOURS, series, strict=False):
            points = [(iteration[float(at)], float(v)) for at, v in each["values"] if float(at) in iteration]
            axes.plot(*zip(*points, strict=True), color=colour, label=_name(each["metric"]), lw=1.6)
        axes.axvline(mark, color="#6b7280", ls="--", lw=1)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=7, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
    return path
