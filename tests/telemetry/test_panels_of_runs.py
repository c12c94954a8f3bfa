"""Dashboards of what really runs: a training command and a server on Ray Serve, read by a real Prometheus."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import Client
from telemetry.dashboards.boards import ROLLOUT, TRAINING, Board
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version
from tests.serving.conftest import TEAM, client_of, serving_two
from tests.telemetry.prometheus import Prometheus, prometheus
from tests.trainers.commands import SHOP, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("ray")]
SHOWN_S = 120.0
"""How long panels may take to fill (s): a rate wants two scrapes with something between them."""
VALUES = {"$__rate_interval": "20s", "$agent": ".*", "$team": TEAM, "$version": ".*"}
"""What Grafana puts into the place of a variable."""


def empty(board: Board, seen: Prometheus) -> list[str]:
    """Questions of the board, choices at its top included, that Prometheus has no answer to."""
    asked = [(p.title, a.expr) for p in board.panels for a in p.asks]
    asked += [(name, query.removeprefix("label_values(").partition(",")[0]) for name, query in board.labels]
    return [f"{title}: {expr}" for title, expr in asked if not seen.series(filled(expr))]


def filled(expr: str) -> str:
    for name, value in VALUES.items():
        expr = expr.replace(name, value)
    return expr


@pytest.fixture
def training(tmp_path: Path, wait_until: WaitUntil) -> Iterator[Path]:
    """A run of the little shop that goes on for as long as the test looks; its directory."""
    out = tmp_path / "runs"
    asked = ("stop.iterations=100000", "evaluation.every=5", "telemetry.port=0")
    run = started(SHOP, "--out", out, *(part for a in asked for part in ("--set", a)))
    try:
        wait_until(lambda: list(out.glob("*/*/targets/*.json")), "the run's metrics port", 120.0)
        yield next(out.glob("*/*/targets")).parent
    finally:
        run.send_signal(signal.SIGINT)
        try:
            run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()


def test_no_panel_of_training_is_empty_while_a_run_goes_on(
    training: Path, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """Every question of the training dashboard has an answer from the ordinary command."""
    with prometheus(tmp_path / "prometheus", [training / "targets"]) as seen:
        try:
            wait_until(lambda: not empty(TRAINING, seen), "every panel to show something", SHOWN_S)
        except pytest.fail.Exception:
            pytest.fail("empty: " + "; ".join(empty(TRAINING, seen)))


def test_no_panel_of_rollouts_is_empty_while_two_versions_serve(tmp_path: Path, wait_until: WaitUntil) -> None:
    """Two versions share the sessions of a real server: ratios, states, requests, rewards, sessions open and ended."""
    exports = tmp_path / "first", tmp_path / "second"
    for seed, export in enumerate(exports):
        fresh_version(export, seed=seed)
    with serving_two(tmp_path, exports, wait_until, telemetry={"port": 0}) as server, client_of(server) as client:
        server.versions.canary(TEAM, "v2", 0.5, by="test", why="two to compare")
        with prometheus(tmp_path / "prometheus", [server.settings.watched.targets]) as seen:
            client.open(TEAM, draw={"index": 0})  # stays open

            def shown() -> bool:
                play(client)
                return not empty(ROLLOUT, seen) and len(seen.series("version_ratio > 0")) == 2

            try:
                wait_until(shown, "every panel to show something", SHOWN_S)
            except pytest.fail.Exception:
                pytest.fail("empty: " + "; ".join(empty(ROLLOUT, seen)))
            answered = {s["metric"]["version"] for s in seen.series("serving_request_duration_seconds_count")}
            assert {"v1", "v2"} <= answered


def play(client: Client) -> None:
    """A few whole sessions, one of which is judged from outside."""
    runs = [client.run(TEAM, draw={"index": index}) for index in range(4)]
    client.feedback(runs[-1], 1.0)
