"""The gates on the live runtime, as the command opens them before it trains."""

import os
import signal

import pytest

from tests.trainers.commands import SHOP, started


@pytest.mark.timeout(330)
def test_a_team_beside_its_file_passes_the_live_gates() -> None:
    """Agents are processes of their own, started elsewhere: they find the team's modules too, and play 100 chains."""
    run = started("--check", SHOP, "--set", "gates.live=true")
    try:
        out, err = run.communicate(timeout=300)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, out[-2000:] + err
    assert "its process killed" in out
    assert "gates: open" in out
