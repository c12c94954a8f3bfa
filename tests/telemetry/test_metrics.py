"""Metrics: one table declares them, a port shows them, a real Prometheus finds and reads them."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from telemetry.metrics.instruments import INSTRUMENTS
from telemetry.metrics.port import MetricsPort, reap
from telemetry.metrics.reference import TARGET, reference
from telemetry.metrics.training import feed
from tests.conftest import WaitUntil
from tests.telemetry.samples import EVALUATION, iteration

FEW = {"agent_id", "phase", "direction", "term", "policy", "tool", "player"}
CONVENTIONAL = {"gen_ai_request_model", "gen_ai_token_type", "gen_ai_tool_name", "error_type"}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[MetricsPort]:
    with MetricsPort(0, "trainer", tmp_path / "targets") as opened:
        yield opened


def page(port: MetricsPort) -> str:
    with urlopen(port.address, timeout=5) as answer:  # noqa: S310 - our own port
        return answer.read().decode()


def test_every_instrument_shows_under_the_name_that_is_documented(port: MetricsPort) -> None:
    """The golden four keep the names that dashboards rely on, and the table's are the port's."""
    for each in INSTRUMENTS.values():
        port.meters.record(each.name, 1.0, **dict.fromkeys(each.labels, "x"))
    shown = {line.split()[2] for line in page(port).splitlines() if line.startswith("# TYPE")}
    assert {i.series for i in INSTRUMENTS.values()} <= shown
    golden = {
        "agent_step_latency_milliseconds", "llm_token_usage_total", "agent_reward_value", "agent_policy_entropy"
    }  # fmt: skip
    assert golden <= shown


def test_labels_are_few(port: MetricsPort) -> None:
    """No ids in labels; an unknown label or name is refused and makes no series."""
    assert {label for i in INSTRUMENTS.values() for label in i.labels} <= FEW | CONVENTIONAL
    with pytest.raises(ValueError, match="has the labels agent_id, not correlation_id"):
        port.meters.record("agent.reward.value", 1.0, correlation_id="c")
    with pytest.raises(KeyError):
        port.meters.record("agent.reward", 1.0)
    port.meters.record("agent.reward.value", float("nan"), agent_id="a")
    port.meters.record("agent.reward.value", None, agent_id="a")
    assert 'agent_id="a"' not in page(port)


def test_the_page_is_current() -> None:
    """docs/metrics.md is what the table says."""
    assert TARGET.read_text(encoding="utf-8") == reference()


def test_a_taken_port_is_passed_over() -> None:
    """The next free one is used, and it is the one that is said."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        with MetricsPort(wanted, "trainer") as opened:
            assert opened.port > wanted
            assert "python_info" in page(opened)


def test_the_dead_are_reaped(port: MetricsPort, tmp_path: Path) -> None:
    """A killed process' target goes, a living one's stays, and one's own goes with the port."""
    targets = tmp_path / "targets"
    ended = subprocess.Popen(["true"])
    ended.wait()
    (targets / f"runner-{ended.pid}.json").write_text("[]")
    assert reap(targets) == [f"runner-{ended.pid}.json"]
    assert [f.name for f in targets.iterdir()] == [f"trainer-{os.getpid()}.json"]
    told = json.loads((targets / f"trainer-{os.getpid()}.json").read_text())
    assert told[0]["targets"] == [f"127.0.0.1:{port.port}"]


def test_prometheus_reads_a_training_iteration(port: MetricsPort, tmp_path: Path, wait_until: WaitUntil) -> None:
    """A real Prometheus finds the port by its file, and answers with an iteration's figures."""
    feed(port.meters, iteration(7, EVALUATION), [("triage", 3.0)])
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: r\n  scrape_interval: 1s\n"
        f"  file_sd_configs: [{{files: ['{tmp_path}/targets/*.json']}}]\n"
    )
    server = subprocess.Popen(
        ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={at}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def value(query: str) -> float | None:
        try:
            with urlopen(f"http://{at}/api/v1/query?{urlencode({'query': query})}", timeout=2) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return None
        return float(found[0]["value"][1]) if found else None

    try:
        wait_until(lambda: value("rl_iteration") == 7, "Prometheus to read the port")
        assert value("agent_step_latency_milliseconds_count") == 1
        assert value('up{job="trainer"}') == 1
    finally:
        server.terminate()
        server.wait()
