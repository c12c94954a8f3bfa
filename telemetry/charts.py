"""A run's curves as Plotly figures: plain JSON values, drawn in the browser without a network.

A colour that begins with ``--`` is a variable of the page's style sheet: the page has a light and a dark one.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import cycle
from typing import Any

from telemetry.curves import DECAY, POINTS, WINDOW, drawn, ema, outlier_bounds, windowed_mean
from telemetry.run_dir import Run
from telemetry.scalars import AgentReport, Figure, IterationReport

COLOURS = tuple(f"--c{k}" for k in range(1, 9))
GREY, INK, LINE, CLEAR = "--soft", "--ink", "--grid", "rgba(0,0,0,0)"
RAW, SMOOTHED, WINDOWED = "raw", "smoothed", "windowed"
"""What a line shows, so that a reader can switch between them."""
SMOOTHING = {WINDOWED: f"mean of {WINDOW} iterations", SMOOTHED: f"moving average ({DECAY:g})"}
ROOM = 0.05
"""Share of the value axis above and below what it has to show."""
OURS = "this team"
"""The team's name beside the baselines'."""
Interval = tuple[float, float]
Value = Callable[[IterationReport], Figure]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A Plotly figure."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    summary: str = ""
    """What it shows, in words: for those who do not see it."""
    notes: list[str] = field(default_factory=list[str])
    """What was left out of it."""

    @property
    def empty(self) -> bool:
        """There is not a single point."""
        return not any(trace["x"] for trace in self.data)

    def figure(self) -> dict[str, Any]:
        """What Plotly is given."""
        return {"data": self.data, "layout": self.layout}


def result_chart(run: Run) -> Chart:
    """The team's held-out return beside every baseline, with the intervals that were measured."""
    ranked = _ranked(run)
    measured = {_shown(name): entry for name, entry in ranked.items() if entry[1] is not None}
    intervals = {
        "type": "scatter",
        "mode": "markers",
        "x": [value for value, _ in measured.values()],
        "y": list(measured),
        "error_x": _errors(list(measured.values()), INK),
        "hoverinfo": "skip",
        "marker": {"size": 1, "color": INK},
    }
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [value for value, _ in ranked.values()],
        "y": [_shown(name) for name in ranked],
        "text": [f"{value:.2f}" for value, _ in ranked.values()],
        "textposition": "top center",
        "textfont": {"size": 12, "color": INK},
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{x:.2f}<extra></extra>",
        "marker": _marks([name == OURS for name in ranked]),
    }
    layout = _layout("return per episode", "", height=90 + 44 * len(ranked))
    order = {"categoryorder": "array", "categoryarray": points["y"]}
    layout["yaxis"] |= {**order, "showgrid": False, "range": [-0.6, len(ranked) - 0.35]}
    summary = ", ".join(f"{name} {value:.2f}" for name, (value, _) in ranked.items())
    return Chart(title="Result beside the baselines", data=[points, intervals], layout=layout, summary=summary)


def _ranked(run: Run) -> dict[str, tuple[float, Interval | None]]:
    """Mean return and interval of every baseline and of the team, the lowest first."""
    evaluation = run.evaluation
    rows: dict[str, tuple[float, Interval | None]] = {}
    for name, value in run.baselines.items():
        if value is not None:
            rows[name] = (value, evaluation.baselines_ci95.get(name) if evaluation else None)
    if evaluation is not None and evaluation.return_mean is not None:
        rows[OURS] = (evaluation.return_mean, evaluation.return_ci95)
    return dict(sorted(rows.items(), key=lambda item: item[1][0]))


def _marks(ours: Sequence[bool]) -> dict[str, Any]:
    """A large diamond for the team, small circles for the others."""
    return {
        "size": [14 if us else 10 for us in ours],
        "symbol": ["diamond" if us else "circle" for us in ours],
        "color": [COLOURS[0] if us else GREY for us in ours],
    }


def learning_chart(runs: Mapping[str, Run]) -> Chart:
    """Return over env steps: each run raw (faint) and smoothed, its evaluations as points, baselines as lines."""
    several = len(runs) > 1
    chart = _lines(
        "Return per episode",
        {(name if several else "in training"): (run.iterations, _team_return) for name, run in runs.items()},
        baselines={name: value for run in runs.values() for name, value in run.baselines.items()},
    )
    for (name, run), colour in zip(runs.items(), cycle(COLOURS), strict=False):
        chart.data.append(_evaluations(f"{name}, held out" if several else "held out", run, colour))
    chart.layout["height"] = 420
    return chart


def agents_chart(run: Run, title: str, figure: Callable[[AgentReport], Figure]) -> Chart:
    """One figure of every agent over env steps."""
    return _lines(title, {agent: (run.iterations, of_agent(agent, figure)) for agent in run.agents})


def rewards_chart(run: Run, agent: str) -> Chart:
    """What an agent is paid in all and by each reward term, per episode."""
    lines = {"in all": (run.iterations, of_agent(agent, lambda a: a.return_mean))}
    for term in names_of([run], agent, lambda a: a.terms):
        lines[term] = (run.iterations, of_agent(agent, lambda a, term=term: a.terms.get(term)))
    return _lines(f"{agent}: reward terms per episode", lines)


def compared_chart(title: str, runs: Mapping[str, Run], value: Value) -> Chart:
    """One figure of several runs over each other."""
    return _lines(title, {name: (run.iterations, value) for name, run in runs.items()})


def calls_chart(run: Run, agent: str) -> Chart:
    """What share of an agent's decisions each call has, over env steps, stacked."""
    reports = [r for r in run.iterations if agent in r.agents]
    places = range(0, len(reports), max(1, len(reports) // (POINTS // 4)))
    steps = [reports[k].env_steps for k in places]
    names = names_of([run], agent, lambda a: a.tool_mix)
    data: list[dict[str, Any]] = []
    for name, colour in zip(names, cycle(COLOURS), strict=False):
        shares = [reports[k].agents[agent].tool_mix.get(name, 0.0) for k in places]
        line = {"color": colour, "width": 1}
        common = {"mode": "lines", "stackgroup": "calls", "hovertemplate": "%{y:.1%}"}
        data.append({"name": _shown(name), "x": steps, "y": _figures(shares), "line": line, **common})
    layout = _layout("env steps", "share of decisions", legend=True)
    layout["yaxis"] |= {"tickformat": ".0%", "range": [0, 1]}
    last = [f"{name} {reports[-1].agents[agent].tool_mix.get(name, 0.0):.0%}" for name in names]
    summary = f"At the end {', '.join(last)}"
    return Chart(title=f"{agent}: share of each call", data=data, layout=layout, summary=summary)


def _team_return(report: IterationReport) -> Figure:
    return report.return_mean


def of_agent(agent: str, figure: Callable[[AgentReport], Figure]) -> Value:
    """An agent's figure of an iteration; None where it had no part in it."""
    return lambda report: figure(report.agents[agent]) if agent in report.agents else None


def names_of(runs: Iterable[Run], agent: str, part: Callable[[AgentReport], Mapping[str, Figure]]) -> list[str]:
    """The names in a part of an agent's figures, such as its reward terms, over all iterations of the runs."""
    reports = [r for run in runs for r in run.iterations if agent in r.agents]
    return list(dict.fromkeys(name for r in reports for name in part(r.agents[agent])))


def _lines(
    title: str,
    named: Mapping[str, tuple[Sequence[IterationReport], Value]],
    *,
    baselines: Mapping[str, Figure] | None = None,
) -> Chart:
    """Each line raw and smoothed; a few exploded values do not flatten the rest, and long curves are thinned."""
    data: list[dict[str, Any]] = []
    columns: dict[str, list[Figure]] = {}
    longest = 0
    for (name, (reports, value)), colour in zip(named.items(), cycle(COLOURS), strict=False):
        columns[name] = [value(r) for r in reports]
        data += _line(name, [r.env_steps for r in reports], columns[name], colour)
        longest = max(longest, len(reports))
    lines = {name: value for name, value in (baselines or {}).items() if value is not None and math.isfinite(value)}
    layout = _layout("env steps", "", legend=len(named) > 1 or bool(lines))
    layout |= {"shapes": [_across(v) for v in lines.values()], "annotations": _labels(lines)}
    notes = _bound(layout, [v for column in columns.values() for v in column], list(lines.values()))
    if longest > POINTS:
        notes.append(f"{longest:,} iterations, drawn by the lowest and highest of each stretch")
    ends = [f"{name} {_span(column)}" for name, column in columns.items()]
    return Chart(title=title, data=data, layout=layout, summary="; ".join(ends), notes=notes)


def _line(name: str, steps: Sequence[int], values: Sequence[Figure], colour: str) -> list[dict[str, Any]]:
    places = drawn(values)
    x = [steps[k] for k in places]
    known = {RAW: list(values), SMOOTHED: ema(values), WINDOWED: windowed_mean(values)}
    return [
        {
            "name": _shown(name),
            "legendgroup": _shown(name),
            "showlegend": shows == WINDOWED,
            "visible": shows != SMOOTHED,
            "meta": shows,
            "x": x,
            "y": _figures([column[k] for k in places]),
            "mode": "lines",
            "opacity": 0.35 if shows == RAW else 1,
            "line": {"color": colour, "width": 1 if shows == RAW else 2},
            "hovertemplate": "%{y:.4g}" + (" raw" if shows == RAW else ""),
        }
        for shows, column in known.items()
    ]


def _bound(layout: dict[str, Any], values: Sequence[Figure], lines: Sequence[float]) -> list[str]:
    """Show the range of the usual values and of all baselines; say how many points are beyond it."""
    bounds = outlier_bounds(values)
    if bounds is None:
        return []
    low, high = min([bounds.low, *lines]), max([bounds.high, *lines])
    room = ROOM * (high - low) or abs(high) * ROOM or 1.0
    layout["yaxis"]["range"] = [low - room, high + room]
    cut = sum(v is not None and math.isfinite(v) and not low - room <= v <= high + room for v in values)
    return [f"{cut:,} outlier{'s' if cut > 1 else ''} beyond the axis (double click: all)"] if cut else []


def _evaluations(name: str, run: Run, colour: str) -> dict[str, Any]:
    """Every evaluation during the run, and in place of the last one that at its end, which is larger."""
    at = {r.env_steps: r.evaluation for r in run.iterations if r.evaluation is not None}
    if run.result is not None and run.result.eval is not None:
        at[run.result.env_steps] = run.result.eval
    held_out = sorted(at.items(), key=lambda item: item[0])
    return {
        "name": _shown(name),
        "x": [steps for steps, _ in held_out],
        "y": _figures([evaluation.return_mean for _, evaluation in held_out]),
        "error_y": _errors([(evaluation.return_mean, evaluation.return_ci95) for _, evaluation in held_out], colour),
        "mode": "markers",
        "hovertemplate": "%{y:.2f}",
        "marker": {"color": colour, "size": 8, "symbol": "diamond", "line": {"color": "--paper", "width": 1}},
    }


def _errors(points: Sequence[tuple[Figure, Interval | None]], colour: str) -> dict[str, Any]:
    known = [(mean, ci) if mean is not None and ci is not None else None for mean, ci in points]
    up = [entry[1][1] - entry[0] if entry else None for entry in known]
    down = [entry[0] - entry[1][0] if entry else None for entry in known]
    bars = {"type": "data", "symmetric": False, "thickness": 1.5, "color": colour}
    return {**bars, "array": _figures(up), "arrayminus": _figures(down)}


def _layout(across: str, up: str, *, height: int = 320, legend: bool = False) -> dict[str, Any]:
    axis = {"gridcolor": LINE, "zerolinecolor": LINE, "linecolor": LINE, "automargin": True}
    return {
        "xaxis": {**axis, "title": {"text": across, "standoff": 8, "font": {"size": 12.5}}},
        "yaxis": {**axis, "title": {"text": up, "standoff": 8, "font": {"size": 12.5}}},
        "height": height,
        "margin": {"l": 52, "r": 12, "t": 8, "b": 44},
        "font": {"family": "system-ui, sans-serif", "size": 12.5, "color": INK},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "hovermode": "x unified" if legend else "closest",
        "hoverlabel": {"bgcolor": "--paper", "bordercolor": "--edge", "font": {"color": INK}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": CLEAR},
        "showlegend": legend,
    }


def _across(value: float) -> dict[str, Any]:
    line = {"color": GREY, "dash": "dot", "width": 1.2}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value, "line": line}


def _labels(lines: Mapping[str, float]) -> list[dict[str, Any]]:
    place = {"xref": "paper", "x": 1, "xanchor": "right", "yanchor": "bottom", "showarrow": False}
    font = {"color": GREY, "size": 11.5}
    return [{**place, "y": v, "text": _shown(f"{name} {v:.2f}"), "font": font} for name, v in lines.items()]


def _span(values: Sequence[Figure]) -> str:
    """From where to where a curve goes, smoothed."""
    smooth = [v for v in ema(values) if v is not None]
    return f"from {smooth[0]:.4g} to {smooth[-1]:.4g}" if smooth else "without a value"


def _shown(text: str) -> str:
    """Text as it is: Plotly takes some of HTML's tags in its texts."""
    return escape(text, quote=False)


def _figures(values: Sequence[Figure]) -> list[Figure]:
    """Five significant digits, more than a screen shows; what is not finite is a gap."""
    return [float(f"{v:.5g}") if v is not None and math.isfinite(v) else None for v in values]
