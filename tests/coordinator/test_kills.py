"""Worker and server are killed in the middle of chains: every chain completes, and every effect comes once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.coordinator.conftest import Server
from tests.live.versions import fresh_version

CASES = 60


class Runner:
    """``tests.coordinator.shop`` as a process: it opens the sessions, and does their turns."""

    def __init__(self, place: Path, address: str, name: str) -> None:
        self.output = place / f"{name}.txt"
        store, ledger = f"sqlite:///{place}/store.db", str(place / "ledger")
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.coordinator.shop", store, ledger, address, str(CASES)],
                stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip

    @property
    def ended(self) -> list[str]:
        return [line.split()[0] for line in self.output.read_text().splitlines() if line.endswith("True")]

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)


def committed(place: Path, kind: str) -> "list[dict[str, object]]":
    with sqlite3.connect(place / "store.db") as store:
        rows = store.execute("SELECT body FROM history WHERE kind = ? ORDER BY id", (kind,)).fetchall()
    return [json.loads(body) for (body,) in rows]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_worker_and_server_change_nothing(temporal: Server, tmp_path: Path, wait_until: WaitUntil) -> None:
    """The worker is killed, then the server, then a worker sleeps past its heartbeats; each case ends once, whole."""
    first = Runner(tmp_path, temporal.address, "first")
    wait_until(lambda: len(first.ended) > 3, "the first sessions to end", 100)
    first.kill()
    first.process.wait(20)
    assert len(first.ended) < CASES, "killed in the middle"
    second = Runner(tmp_path, temporal.address, "second")
    wait_until(lambda: len(committed(tmp_path, "episode_ended")) > CASES / 3, "a third of the sessions to end", 100)
    temporal.kill()
    temporal.start()
    wait_until(lambda: len(committed(tmp_path, "episode_ended")) > CASES / 2, "half of the sessions to end", 100)
    second.kill(signal.SIGSTOP)
    assert len(committed(tmp_path, "episode_ended")) < CASES, "stopped in the middle"
    third = Runner(tmp_path, temporal.address, "third")
    try:
        wait_until(lambda: len(third.ended) > CASES / 2, "another worker to go on", 100)
        second.kill(signal.SIGCONT)
        assert third.process.wait(120) == 0, third.output.read_text()
    finally:
        for runner in (second, third):
            runner.kill()
            runner.process.wait(20)
    assert len(set(third.ended)) == CASES
    ends = Counter(r["correlation_id"] for r in committed(tmp_path, "episode_ended"))
    assert ends == Counter(dict.fromkeys(third.ended, 1))
    decisions = Counter((r["correlation_id"], r["agent"], r["turn"]) for r in committed(tmp_path, "decided"))
    assert set(decisions.values()) == {1}
    assert len(decisions) == 5 * CASES
    assert len({r["pid"] for r in committed(tmp_path, "agent_started")}) == 3
    effects = (tmp_path / "ledger").read_text().splitlines()
    keys = {line.split()[1] for line in effects}
    assert len(keys) == 3 * CASES, "an outside effect comes once by its key, however often its turn was begun"
    assert not any(line.startswith("cancel") for line in effects)


def by_scenario(place: Path) -> dict[str, list[str]]:
    scenario = {r["correlation_id"]: r["scenario"] for r in committed(place, "episode_opened")}
    found: dict[str, list[str]] = {}
    for record in committed(place, "decided"):
        found.setdefault(scenario[record["correlation_id"]], []).append(json.dumps([record["agent"], record["call"]]))
    return found


def run(version: Path, place: Path, *more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            sys.executable, "-u", "-m", "runtime.run", "supply_chain", "--version", str(version),
            "--scenarios", "eval:2:40", "--dir", str(place), "--patience", "120", *more,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_command_plays_as_the_bus_does(temporal: Server, tmp_path: Path) -> None:
    """A trained team, agents as Ray actors that are killed: the decisions of the embedded coordinator, one by one."""
    version = tmp_path / "version"
    fresh_version(version)
    calm = run(version, tmp_path / "calm")
    _, faults = calm.communicate(timeout=120)
    assert calm.returncode == 0, faults
    stormy = run(version, tmp_path / "stormy", "--coordinator", "temporal", "--temporal", temporal.address)
    pids: list[int] = []
    for line in stormy.stdout:
        if line.startswith("Agent-"):
            pids.append(int(line.split()[-1]))
        elif "success" in line:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            break
    rest, faults = stormy.communicate(timeout=200)
    assert stormy.returncode == 0, faults
    assert len(pids) == 3
    assert "dead letters 0" in rest
    assert by_scenario(tmp_path / "stormy") == by_scenario(tmp_path / "calm")
    assert len(committed(tmp_path / "stormy", "agent_started")) >= 6, "each agent was started again"
    assert set(Counter(r["correlation_id"] for r in committed(tmp_path / "stormy", "episode_ended")).values()) == {1}
    gone = run(version, tmp_path / "gone", "--coordinator", "temporal", "--temporal", "127.0.0.1:1")
    _, faults = gone.communicate(timeout=60)
    assert gone.returncode == 3
    assert "127.0.0.1:1" in faults
