"""Dashboards as Grafana's JSON, by Grafana's own SDK."""

from collections.abc import Callable, Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, statetimeline, table, tempo, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    GridPos,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from telemetry.dashboards.boards import Ask, Board, Kind, Panel

METRICS = DataSourceRef(type_val="prometheus", uid="${metrics}")
TRACES = DataSourceRef(type_val="tempo", uid="${traces}")
TAG = "repertory"
WIDTH, HEIGHT = 12, 8
"""Of a panel: two beside each other fill Grafana's 24 columns."""
WIDE: tuple[Kind, ...] = ("lanes", "table", "traces")
"""Panels that take the whole width."""
MAKERS: dict[Kind, Callable[[], Any]] = {
    "lines": timeseries.Panel,
    "number": stat.Panel,
    "lanes": statetimeline.Panel,
    "table": table.Panel,
    "traces": table.Panel,
}


def dashboard_json(board: Board) -> str:
    """A dashboard as its file has it."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .tags([TAG])
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(_others())
        .with_variable(dashboard.DatasourceVariable("metrics").label("Prometheus").type("prometheus"))
    )
    if any(p.kind == "traces" for p in board.panels):
        made = made.with_variable(dashboard.DatasourceVariable("traces").label("Tempo").type("tempo"))
    for name, query in board.labels:
        made = made.with_variable(_choice(name, query))
    for number, (panel, place) in enumerate(zip(board.panels, _places(board.panels), strict=True), start=1):
        made = made.with_panel(_panel(panel, number).grid_pos(place))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _others() -> Any:
    return dashboard.DashboardLink("Repertory").type(DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)


def _choice(name: str, query: str) -> Any:
    asked = (
        dashboard.QueryVariable(name).query(query).datasource(METRICS).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return asked.multi(True).include_all(True).all_value(".*")


def _places(panels: Sequence[Panel]) -> Iterator[GridPos]:
    """Two panels beside each other; a wide one begins a row of its own."""
    x = y = 0
    for panel in panels:
        width = 2 * WIDTH if panel.kind in WIDE else WIDTH
        if x + width > 2 * WIDTH:
            x, y = 0, y + HEIGHT
        yield GridPos(h=HEIGHT, w=width, x=x, y=y)
        x += width


def _panel(panel: Panel, number: int) -> Any:
    made = MAKERS[panel.kind]().title(panel.title).id(number).unit(panel.unit)
    made = made.description(panel.about).datasource(TRACES if panel.kind == "traces" else METRICS)
    for letter, ask in zip(ascii_uppercase, panel.asks, strict=False):
        made = made.with_target(_target(panel.kind, letter, ask))
    if panel.kind == "table":
        made = made.with_transformation(_merged())
    if panel.kind == "lanes":
        made = made.data_links([_to_traces()])
    return made


def _target(kind: Kind, letter: str, ask: Ask) -> Any:
    if kind == "traces":
        return tempo.TempoQuery().ref_id(letter).query_type("traceql").query(ask.expr).datasource(TRACES)
    asked = prometheus.Dataquery().ref_id(letter).expr(ask.expr).legend_format(ask.legend or "__auto")
    asked = asked.datasource(METRICS)
    return asked.instant().format(PromQueryFormat.TABLE) if kind == "table" else asked.range()


def _merged() -> Any:
    return DataTransformerConfig(id_val="merge", options={})


def _to_traces() -> Any:
    where = "/d/repertory-chains?var-agent=${__field.labels.agent_id}&from=${__value.time}"
    return dashboard.DashboardLink("Decisions of this agent from then on").url(where)
