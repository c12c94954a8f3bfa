"""A run's curves as Plotly figures: plain JSON values, drawn in the browser without a network."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle
from typing import Any

from telemetry.curves import ema, outlier_bounds
from telemetry.run_dir import Run
from telemetry.scalars import AgentReport, Figure, IterationReport

Chart = dict[str, Any]
"""A Plotly figure: ``data`` and ``layout``."""
COLOURS = ("#3b6fb6", "#d97732", "#3f9a6b", "#b0437a", "#7a5fb5", "#8a6d3b", "#2a9aa8", "#c04a4a")
GREY = "#8a8f98"


def result_chart(run: Run) -> Chart:
    """The team's held-out return beside every baseline, with the intervals that were measured."""
    evaluation = run.evaluation
    rows: dict[str, tuple[Figure, tuple[float, float] | None]] = {}
    for name, value in run.baselines.items():
        rows[name] = (value, evaluation.baselines_ci95.get(name) if evaluation else None)
    if evaluation is not None:
        rows["this team"] = (evaluation.return_mean, evaluation.return_ci95)
    ranked = sorted((item for item in rows.items() if item[1][0] is not None), key=lambda item: item[1][0] or 0.0)
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": _finite([value for _, (value, _) in ranked]),
        "y": [_shown(name) for name, _ in ranked],
        "error_x": _errors([entry for _, entry in ranked]),
        "marker": {"size": 13, "color": [COLOURS[0] if name == "this team" else GREY for name, _ in ranked]},
    }
    return _chart([points], "return per episode", height=110 + 36 * len(ranked))


def learning_chart(runs: Sequence[Run]) -> Chart:
    """Return over env steps: each run raw (faint) and smoothed, its evaluations as points, baselines as lines."""
    traces: list[Any] = []
    for run, colour in zip(runs, cycle(COLOURS), strict=False):
        name = f"{run.name}, " if len(runs) > 1 else ""
        steps = [r.env_steps for r in run.iterations]
        returns = [r.return_mean for r in run.iterations]
        traces.append({**_line(f"{name}raw", steps, returns, colour), "opacity": 0.3, "showlegend": False})
        traces.append(_line(f"{name}smoothed", steps, ema(returns), colour))
        traces.append(_evaluations(name, run.iterations, colour))
    baselines = {name: value for run in runs for name, value in run.baselines.items()}
    return _chart(traces, "env steps", "return per episode", lines=baselines)


def agent_chart(run: Run, figure: Callable[[AgentReport], Figure], *, bounded: bool = False) -> Chart:
    """One figure of every agent over env steps; bounded: a few exploded values do not flatten the rest."""

    def value(report: IterationReport, agent: str) -> Figure:
        return figure(report.agents[agent]) if agent in report.agents else None

    return _lines(run.iterations, run.agents, value, bounded=bounded)


def terms_chart(run: Run, agent: str) -> Chart:
    """An agent's reward terms over env steps."""
    return _of_agent(run, agent, lambda a: a.terms)


def tools_chart(run: Run, agent: str) -> Chart:
    """What share of an agent's decisions each call has, over env steps, stacked."""
    chart = _of_agent(run, agent, lambda a: a.tool_mix)
    for trace in chart["data"]:
        trace["stackgroup"] = "calls"
    return chart


def _of_agent(run: Run, agent: str, part: Callable[[AgentReport], Mapping[str, Figure]]) -> Chart:
    reports = [r for r in run.iterations if agent in r.agents]
    names = list(dict.fromkeys(name for r in reports for name in part(r.agents[agent])))
    return _lines(reports, names, lambda r, name: part(r.agents[agent]).get(name))


def _lines(
    reports: Sequence[IterationReport],
    names: Sequence[str],
    value: Callable[[IterationReport, str], Figure],
    *,
    bounded: bool = False,
) -> Chart:
    steps = [r.env_steps for r in reports]
    columns = {name: [value(r, name) for r in reports] for name in names}
    traces = [
        _line(name, steps, column, colour)
        for (name, column), colour in zip(columns.items(), cycle(COLOURS), strict=False)
    ]
    chart = _chart(traces, "env steps")
    return _bounded(chart, [v for column in columns.values() for v in column]) if bounded else chart


def _bounded(chart: Chart, values: Sequence[Figure]) -> Chart:
    bounds = outlier_bounds(values)
    if bounds is not None and bounds.cut:
        chart["layout"]["yaxis"]["range"] = [bounds.low, bounds.high]
        chart["layout"]["yaxis"]["title"] = {"text": f"{bounds.cut} outliers not shown"}
    return chart


def _line(name: str, steps: Sequence[int], values: Sequence[Figure], colour: str) -> dict[str, Any]:
    line = {"color": colour, "width": 2}
    return {"name": _shown(name), "x": list(steps), "y": _finite(values), "mode": "lines", "line": line}


def _evaluations(name: str, reports: Sequence[IterationReport], colour: str) -> dict[str, Any]:
    held_out = [(r.env_steps, r.evaluation) for r in reports if r.evaluation is not None]
    return {
        "name": _shown(f"{name}held out"),
        "x": [steps for steps, _ in held_out],
        "y": _finite([evaluation.return_mean for _, evaluation in held_out]),
        "error_y": _errors([(evaluation.return_mean, evaluation.return_ci95) for _, evaluation in held_out]),
        "mode": "markers",
        "marker": {"color": colour, "size": 8, "symbol": "diamond"},
    }


def _errors(points: Sequence[tuple[Figure, tuple[float, float] | None]]) -> dict[str, Any]:
    known = [(mean, ci) if mean is not None and ci is not None else None for mean, ci in points]
    up = [entry[1][1] - entry[0] if entry else 0.0 for entry in known]
    down = [entry[0] - entry[1][0] if entry else 0.0 for entry in known]
    return {"type": "data", "symmetric": False, "array": _finite(up), "arrayminus": _finite(down)}


def _chart(
    traces: Sequence[Any], across: str, up: str = "", *, lines: Mapping[str, Figure] | None = None, height: int = 340
) -> Chart:
    axis = {"gridcolor": "#e6e8eb", "zerolinecolor": "#c5c9cf", "automargin": True}
    known = {name: value for name, value in (lines or {}).items() if value is not None and math.isfinite(value)}
    layout: dict[str, Any] = {
        "xaxis": {**axis, "title": {"text": across}},
        "yaxis": {**axis, "title": {"text": up}},
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 26, "b": 48},
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "showlegend": len(traces) > 1,
        "shapes": [_across(value) for value in known.values()],
        "annotations": [_label(name, value) for name, value in known.items()],
    }
    return {"data": list(traces), "layout": layout}


def _across(value: float) -> dict[str, Any]:
    line = {"color": GREY, "dash": "dash", "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value, "line": line}


def _label(name: str, value: float) -> dict[str, Any]:
    place = {"xref": "paper", "x": 1, "y": value, "xanchor": "right", "yanchor": "bottom", "showarrow": False}
    return {**place, "text": _shown(f"{name} {value:.2f}"), "font": {"color": GREY, "size": 12}}


def _shown(text: str) -> str:
    """Text as it is: Plotly takes some of HTML's tags in its texts."""
    return escape(text, quote=False)


def _finite(values: Sequence[Figure]) -> list[Figure]:
    return [value if value is not None and math.isfinite(value) else None for value in values]
