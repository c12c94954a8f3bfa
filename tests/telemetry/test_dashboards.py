"""Dashboards and alert rules: what lies in deploy/ is what the descriptions say, and Prometheus takes it."""

import json
import re
import subprocess
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from telemetry.dashboards.__main__ import DEPLOY, files
from telemetry.dashboards.boards import BOARDS, Board, Panel
from telemetry.metrics.instruments import INSTRUMENTS

PANELS = [(b, p) for b in BOARDS for p in b.panels]
SUFFIXES = ("_bucket", "_sum", "_count")


def shipped(board: Board) -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "dashboards" / f"{board.uid}.json").read_text())


def test_the_files_are_current() -> None:
    """deploy/ is what ``python -m telemetry.dashboards`` writes."""
    stale = [str(p) for p, text in files().items() if not p.is_file() or p.read_text() != text]
    assert not stale, "run python -m telemetry.dashboards"


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.uid)
def test_a_dashboard_is_whole(board: Board) -> None:
    """Every question has a letter of its own and a source; panels have their own numbers and do not overlap."""
    made = shipped(board)
    assert made["uid"] == board.uid
    assert made["schemaVersion"] >= 36
    panels = made["panels"]
    assert len(panels) == len(board.panels)
    assert len({p["id"] for p in panels}) == len(panels)
    cells = [
        (x, y)
        for p in panels
        for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
        for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    variables = {v["name"] for v in made["templating"]["list"]}
    for panel in panels:
        letters = [t["refId"] for t in panel["targets"]]
        assert len(set(letters)) == len(letters) > 0, panel["title"]
        assert all(letters), panel["title"]
        assert all(t["datasource"]["uid"] for t in panel["targets"])
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(panel["targets"]))) - {"__rate_interval"}
        assert used <= variables, panel["title"]


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.uid)
def test_grafanas_own_model_has_a_place_for_all_of_it(board: Board) -> None:
    """Read by Grafana's SDK and written again, it is the same: what its schema does not know would be lost."""
    made = shipped(board)
    assert through_the_schema(made) == made
    made["panels"][0]["unheard_of"] = 1
    assert through_the_schema(made) == shipped(board)


def through_the_schema(made: dict[str, Any]) -> dict[str, Any]:
    return json.loads(JSONEncoder().encode(Dashboard.from_json(made)))


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=[f"{b.uid}: {p.title}" for b, p in PANELS])
def test_panels_ask_for_what_there_is(board: Board, panel: Panel) -> None:
    """Every series that a panel asks for is one of the table's."""
    known = {i.series for i in INSTRUMENTS.values()} | {"up"}
    if panel.kind == "traces":
        pytest.skip("asked of Tempo, in TraceQL")
    for ask in panel.asks:
        bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]|by \([^)]*\)', "", ask.expr)
        series = set(re.findall(r"[a-z_]{2,}", bare)) - {
            "sum", "rate", "increase", "histogram_quantile", "by", "le", "or"
        }  # fmt: skip
        assert series, ask.expr
        assert {re.sub(f"({'|'.join(SUFFIXES)})$", "", s) if s not in known else s for s in series} <= known, ask.expr


def test_every_part_is_on_a_dashboard() -> None:
    """The instruments that nobody would see otherwise are few, and named here."""
    text = " ".join(a.expr for _, p in PANELS for a in p.asks)
    hidden = {i.name for i in INSTRUMENTS.values() if i.series not in text}
    assert hidden == {
        "agent.failures", "agent.redeliveries", "agent.starts", "bus.lag", "bus.length",
        "gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.invoke_agent.duration",
        "model.breaker", "model.cost", "rl.agent.return",
        "rl.env_steps", "rl.episode.length", "rl.evaluation.success", "rl.iteration", "rl.reward.std", "rl.staleness",
        "serving.errors", "session.duration", "session.opened", "tool.undone",
    }  # fmt: skip


def test_prometheus_takes_the_rules() -> None:
    """promtool checks them, and their unit tests hold: they fire when they should, and not before."""
    place = DEPLOY / "prometheus"
    for command in (
        ["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"], ["check", "config", "prometheus.yml"]
    ):  # fmt: skip
        said = subprocess.run(["promtool", *command], cwd=place, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr


def test_provisioning_is_read() -> None:
    """Both files are YAML of the version that Grafana reads; the dashboards' sources are those that it is given."""
    place = DEPLOY / "grafana" / "provisioning"
    sources = yaml.safe_load((place / "datasources" / "repertory.yaml").read_text())
    assert sources["apiVersion"] == 1
    assert {s["type"] for s in sources["datasources"]} == {"prometheus", "tempo"}
    assert yaml.safe_load((place / "dashboards" / "repertory.yaml").read_text())["providers"][0]["type"] == "file"
