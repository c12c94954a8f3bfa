"""Requests are timed where they come in, by team, version and status, and by nothing that a client chooses."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from serving.http.measured import Measured
from telemetry.metrics.watching import Watch
from tests.telemetry.test_live_metrics import page


@pytest.fixture
def watch(tmp_path: Path) -> Any:
    with Watch(0, "router", tmp_path) as opened:
        yield opened


def asked(app: Any, path: str) -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(_: Any) -> None:
        return

    anyio.run(app, {"type": "http", "path": path}, receive, send)


def answering(status: int, version: str) -> Any:
    async def app(_: Any, __: Any, send: Any) -> None:
        headers = [(b"X-Agent-Version", version.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    return app


def test_requests_are_counted_by_team_version_and_status(watch: Watch) -> None:
    """An unknown team is no label of its own; errors are counted beside durations."""
    asked(Measured(answering(200, "v1"), watch, {"shop"}), "/v1/teams/shop/runs")
    asked(Measured(answering(503, "none"), watch, {"shop"}), "/v1/teams/whatever-4711/runs")
    shown = page(watch.port)
    assert shown['serving_request_duration_seconds_count{status="200",team="shop",version="v1"}'] == 1
    assert shown['serving_errors_total{status="503",team="none",version="none"}'] == 1
    assert not [name for name in shown if "4711" in name]


def test_what_breaks_off_is_an_error(watch: Watch) -> None:
    """An application that raises before it answers counts as 500."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        asked(Measured(broken, watch, {"shop"}), "/v1/teams/shop/runs")
    assert page(watch.port)['serving_errors_total{status="500",team="shop",version="none"}'] == 1
