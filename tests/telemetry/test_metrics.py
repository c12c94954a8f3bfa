"""Metrics: one table declares them, a port shows them, a real Prometheus finds and reads them."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from telemetry.metrics.instruments import INSTRUMENTS
from telemetry.metrics.port import MetricsPort, reap
from telemetry.metrics.reference import TARGET, reference
from telemetry.metrics.training import feed
from tests.conftest import WaitUntil
from tests.telemetry.prometheus import prometheus
from tests.telemetry.samples import EVALUATION, iteration

FEW = {
    "agent_id", "phase", "direction", "term", "policy", "tool", "player", "source", "part", "outcome", "model",
    "stream", "team", "version", "state", "status",
}  # fmt: skip
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
    with prometheus(tmp_path / "prometheus", [tmp_path / "targets"]) as seen:
        wait_until(lambda: seen.value("rl_iteration") == 7, "Prometheus to read the port")
        assert seen.value("agent_step_latency_milliseconds_count") == 1
        assert seen.value('up{job="trainer"}') == 1


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_a_dead_collector_slows_nothing_and_is_said_once(
    hangs: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    """Figures are put in as fast as ever, and there is one line about it, however many exports fail."""
    monkeypatch.setattr("telemetry.metrics.port.EXPORT_EVERY_MS", 50)
    monkeypatch.setattr("telemetry.metrics.port.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        at = listening.getsockname()[1]
        if not hangs:
            listening.close()
        with MetricsPort(0, "trainer", otlp=f"http://127.0.0.1:{at}") as opened:
            began = time.monotonic()
            for _ in range(1000):
                opened.meters.record("rl.iteration", 1)
            assert time.monotonic() - began < 1.0
            wait_until(lambda: caplog.records, "the line about it")
    assert [r.getMessage() for r in caplog.records if "collector does not answer" in r.getMessage()]
    assert len(caplog.records) == 1
