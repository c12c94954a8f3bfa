"""One HTML file that loads nothing: style, scripts, charts and episodes are inside, and only our scripts may run."""

import base64
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

from telemetry.charts import Chart
from telemetry.html import Html, join, script_json, tag

SCRIPTS = ("page.js", "charts.js", "timeline.js")
NOTHING = tag("p", "Nothing was recorded.", class_="nothing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of a page."""

    anchor: str
    title: str
    body: Sequence[Html]
    """Boxes, two abreast where there is room; one of the class ``wide`` is alone."""


def box(title: str, *body: str, wide: bool = False) -> Html:
    """A framed part of a section."""
    heading = [tag("h3", title)] if title else []
    return tag("article", *heading, *body, class_="box wide" if wide else "box")


def chart_box(chart: Chart, *, wide: bool = False) -> Html:
    """A chart with what was left out of it."""
    if chart.empty:
        return box(chart.title, NOTHING, wide=wide)
    data = Html(f'<script type="application/json">{script_json(chart.figure())}</script>')
    height = f"min-height: {chart.layout['height']}px"
    label = f"{chart.title}. {chart.summary}"
    drawing = tag("div", data, class_="chart", role="img", aria_label=label, style=height)
    notes = [tag("p", "; ".join(chart.notes), class_="note")] if chart.notes else []
    return box(chart.title, drawing, *notes, wide=wide)


def page(title: str, headline: Html, parts: Sequence[Section], episodes: dict[str, Any] | None = None) -> str:
    """The whole file.

    Args:
        title: the page's name.
        headline: what stands at its top.
        parts: its sections.
        episodes: what the timeline draws.
    """
    own = "\n".join(_asset(name) for name in SCRIPTS)
    return Template(_asset("page.html")).substitute(
        title=join(title),
        policy=_policy(own, _plotly()),
        style=_asset("page.css"),
        links=join(*_links(parts)),
        headline=headline,
        body=join(*(_section(part) for part in parts)),
        episodes=script_json(episodes),
        plotly=_packed(),
        script=own,
    )


def _section(part: Section) -> Html:
    heading = tag("h2", part.title, id=f"{part.anchor}-title")
    boxes = tag("div", *part.body, class_="boxes")
    return tag("section", heading, boxes, id=part.anchor, aria_labelledby=f"{part.anchor}-title")


def _links(parts: Sequence[Section]) -> Iterator[Html]:
    for part in parts:
        yield tag("a", part.title, href=f"#{part.anchor}")


def _policy(*scripts: str) -> str:
    """A content security policy: no request leaves the page, and no script runs but those."""
    allowed = " ".join(f"'sha256-{base64.b64encode(sha256(s.encode()).digest()).decode()}'" for s in scripts)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


def _asset(name: str) -> str:
    return (files("telemetry.report") / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Plotly's library (MIT licence, which its first lines name)."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


@cache
def _packed() -> str:
    """The library, compressed to less than half in a form that stands in HTML; the page unpacks it."""
    return base64.b64encode(gzip.compress(_plotly().encode(), 9, mtime=0)).decode()
