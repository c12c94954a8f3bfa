"""Whatever the user's code does, the command's exit code is its own; signals end a run in good order at any time."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.trainers.commands import SHOP, Command, started

pytestmark = [
    pytest.mark.timeout(900),
    # Ray leaves its processes to themselves, and RLlib calls what it has deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

QUICK = ("evaluation.every=100", "evaluation.role_swap=false", "scenarios.eval.count=5", "telemetry.tensorboard=false")
LATER = "from_case: 1200"
"""The first scenario that only training reaches."""


def test_a_world_that_exits_ends_nothing_but_itself(command: Command) -> None:
    """sys.exit(0) in the user's code: exit 1 and its line, not 0 and nothing done."""
    ran = command("team.args={burns: exits}", *QUICK)
    assert ran.code == 1, ran.out
    assert "the team's own code raised: SystemExit at " in ran.err
    assert "little_shop.py:" in ran.err


def test_a_world_that_exits_at_a_remote_sampler(command: Command) -> None:
    """Ray would take it for the sampler's wish to end; it is told as if it were here."""
    ran = command(f"team.args={{burns: exits, {LATER}}}", "resources.env_runners=2", "stop.iterations=40", *QUICK)
    assert ran.code == 1, ran.out
    assert "SystemExit at " in ran.err


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that end with the test, whatever happens."""
    mine: list[subprocess.Popen[str]] = []
    yield mine
    for process in mine:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_sigterm_in_training_leaves_a_checkpoint(
    tmp_path: Path, processes: list["subprocess.Popen[str]"], wait_until: WaitUntil
) -> None:
    """What a supervisor sends reaches the main process alone: exit 130, a checkpoint, a result, how to resume."""
    run = started(SHOP, "--out", tmp_path, "--set", "stop.iterations=10000")
    processes.append(run)
    wait_until(lambda: any(f.stat().st_size for f in tmp_path.glob("*/*/metrics.jsonl")), "an iteration", within_s=600)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 130, err
    assert "*** SIGTERM" not in err
    assert "resume with: python -m trainers.run --resume " in out
    assert any(tmp_path.glob("*/*/checkpoints/[0-9]*"))
    assert any(tmp_path.glob("*/*/result.json"))


@pytest.mark.slow
@pytest.mark.parametrize("file", ["origin.txt", "prepared.json", "rehearsal/version"])
def test_sigterm_before_training_stops_at_once(
    tmp_path: Path, processes: list["subprocess.Popen[str]"], wait_until: WaitUntil, file: str
) -> None:
    """While it is measured, audited and tried live: exit 130, and how to begin again."""
    run = started(SHOP, "--out", tmp_path, "--set", "gates.live=true")
    processes.append(run)
    wait_until(lambda: any(tmp_path.glob(f"*/*/{file}")), file, within_s=600)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 130, out + err
    assert "*** SIGTERM" not in err
    assert "python -m trainers.run --resume " in err
    assert not any(tmp_path.glob("*/*/result.json"))
