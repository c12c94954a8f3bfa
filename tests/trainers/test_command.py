"""The command in a process of its own: refusals at once, and what no process can do to itself."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.trainers.commands import HERE, QUICK, SHOP, Ran, started

BROKEN = HERE.parent / "experiment" / "broken"
CPU_S = 2.0
"""CPU time that a refusal may take (s): twice the promised second, for slow machines; it is counted, not waited for."""


@pytest.mark.parametrize("args", [("--help",), ("three_at_once",), ("module_that_raises",), ("no_such_module",)])
def test_help_and_refusals_answer_at_once(args: tuple[str, ...]) -> None:
    """Exit 0 or 2, no traceback of ours, without the time that importing Ray or torch takes."""
    given = [a if a.startswith("-") else str(BROKEN / f"{a}.yaml") for a in args]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "trainers.run", *given], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == (0 if args == ("--help",) else 2), done.stderr
    assert "Traceback" not in done.stderr
    assert after.ru_utime - before.ru_utime < CPU_S


def test_the_same_seed_is_the_same_curve_in_every_process(tmp_path: Path) -> None:
    """Though Python orders sets of names otherwise from process to process."""
    orders: dict[str, str] = {}
    for salt in map(str, range(20)):
        env = {**os.environ, "PYTHONHASHSEED": salt, "OMP_NUM_THREADS": "1"}
        listed = [sys.executable, "-c", "print(list({'buyer', 'clerk'}))"]
        orders.setdefault(subprocess.run(listed, env=env, capture_output=True, text=True, check=True).stdout, salt)
    assert len(orders) == 2
    sets = [part for s in (*QUICK, "stop.iterations=2") for part in ("--set", s)]
    versions: set[str] = set()
    for salt in orders.values():
        env = {**os.environ, "PYTHONHASHSEED": salt, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "trainers.run", str(SHOP), "--out", str(tmp_path / salt), *sets]
        subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        directory = _directory(tmp_path / salt)
        assert directory
        versions.add(Ran(0, "", "", directory).result["version"])
    assert len(versions) == 1


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that end with the test, whatever happens."""
    mine: list[subprocess.Popen[str]] = []
    yield mine
    for process in mine:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _directory(out: Path) -> Path | None:
    return next((p.parent for p in out.glob("*/*/experiment.yaml")), None)


@pytest.mark.slow
def test_killed_and_resumed_is_undisturbed(
    tmp_path: Path, processes: list["subprocess.Popen[str]"], wait_until: WaitUntil
) -> None:
    """kill -9 of everything after the first checkpoint, --resume: the figures and the version of an undisturbed run."""
    killed = started(SHOP, "--out", tmp_path / "killed")
    processes.append(killed)
    wait_until(lambda: any((tmp_path / "killed").glob("*/*/checkpoints/[0-9]*")), "a checkpoint", within_s=900)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    directory = _directory(tmp_path / "killed")
    assert directory
    assert not (directory / "result.json").exists()
    rest = started("--resume", directory)
    processes.append(rest)
    out, err = rest.communicate()
    assert rest.returncode == 0, err
    assert "resumed at iteration" in out
    undisturbed = started(SHOP, "--out", tmp_path / "undisturbed")
    processes.append(undisturbed)
    _, err = undisturbed.communicate()
    assert undisturbed.returncode == 0, err
    resumed = Ran(0, out, err, directory)
    whole = Ran(0, "", "", _directory(tmp_path / "undisturbed"))
    assert resumed.metrics == whole.metrics
    assert resumed.result["version"] == whole.result["version"]
    assert resumed.result["eval"] == whole.result["eval"]


@pytest.mark.slow
def test_ctrl_c_reaches_everybody_and_leaves_a_checkpoint(
    tmp_path: Path, processes: list["subprocess.Popen[str]"], wait_until: WaitUntil
) -> None:
    """A terminal sends it to the whole group: exit 130, and the message says how to resume."""
    run = started(SHOP, "--out", tmp_path)
    processes.append(run)
    wait_until(lambda: any(f.stat().st_size for f in tmp_path.glob("*/*/metrics.jsonl")), "an iteration", within_s=900)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate()
    assert run.returncode == 130, err
    assert "resume with: python -m trainers.run --resume " in out
    assert any(tmp_path.glob("*/*/checkpoints/[0-9]*"))


@pytest.mark.slow
def test_supply_chain_with_usual_settings_collapses_and_says_so(
    tmp_path: Path, processes: list["subprocess.Popen[str]"]
) -> None:
    """A small constant entropy bonus teaches it to ask nothing: exit 6, by name, with the last good checkpoint."""
    file = HERE.parents[1] / "experiments" / "supply_chain.yaml"
    settings = (
        "ppo.entropy_coeff=0.05", "ppo.lr=0.001", "ppo.train_batch_size=4000", "resources.env_runners=0",
        "evaluation.every=10", "stop.iterations=80", "stop.minutes=30", "scenarios.eval.count=200",
        "checkpoints.every=5",
    )  # fmt: skip
    sets = [part for s in settings for part in ("--set", s)]
    run = started(file, "--out", tmp_path, *sets)
    processes.append(run)
    out, err = run.communicate()
    assert run.returncode == 6, out[-2000:] + err
    assert "calls no tool any more" in out
    assert "last good checkpoint: " in out
