"""The gates on the live runtime, as the command opens them before it trains."""

import copy
import os
import signal
import sys
from pathlib import Path

import pytest

from assembly.build import Build
from assembly.loading import load
from tests.trainers.commands import HERE, SHOP, started
from trainers import live_gate
from trainers.live_gate import Late
from trainers.prepare import prepare


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


@pytest.mark.timeout(240)
def test_agents_that_are_late_close_the_gate_and_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was waited for and how long, how busy the machine is, and what to do: a closed gate, no crash."""
    monkeypatch.setattr(live_gate, "START_S", 0.01)
    monkeypatch.setattr(sys, "path", [*sys.path, str(HERE)])
    build = Build(load(SHOP, ["gates.live=true"]), HERE)
    measure, gate = live_gate.live_gate(build, prepare(build, tmp_path), tmp_path)
    assert not measure.ok
    assert "for buyer to start; load" in measure.note
    assert f"on {os.cpu_count()} cores" in measure.note
    assert "gates.live=false" in measure.note
    assert gate.not_applicable


@pytest.mark.parametrize(("load", "said"), [(9.0, "try again when it is less so"), (0.5, "may hang")])
def test_a_busy_machine_and_a_team_that_hangs_are_told_apart(load: float, said: str) -> None:
    """The remedy follows from the load; the error survives the way between processes."""
    late = copy.copy(Late("clerk to start", 60.0, load, 2))
    assert str(late).startswith(f"waited 60 s for clerk to start; load {load} on 2 cores")
    assert said in str(late)
