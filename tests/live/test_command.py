"""The command, as an operator runs it: real actors, killed while they work, and the same result."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.live.versions import fresh_version

CASES = 300


def started(version: Path, place: Path, *more: str) -> "subprocess.Popen[str]":
    scenarios = more[0] if more else f"eval:2:{CASES}"
    return subprocess.Popen(
        [
            sys.executable, "-u", "-m", "runtime.run", "supply_chain", "--version", str(version),
            "--scenarios", scenarios, "--dir", str(place), "--window", "40", "--patience", "240", *more[1:],
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def decisions(place: Path) -> dict[str, list[str]]:
    """What was decided, by scenario, as the store has it."""
    with sqlite3.connect(place / "store.db") as store:
        rows = store.execute("SELECT session, kind, body FROM history ORDER BY id").fetchall()
    scenario: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for session, kind, body in rows:
        if kind == "episode_opened":
            scenario[session] = json.loads(body)["scenario"]
        elif kind == "decided":
            found.setdefault(scenario[session], []).append(json.dumps(json.loads(body)["call"]))
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_agents_change_nothing(tmp_path: Path, wait_until: WaitUntil) -> None:
    """Every agent's process is killed once while the sessions run; each case ends once, with the same decisions."""
    version = tmp_path / "version"
    fresh_version(version)
    calm = started(version, tmp_path / "calm")
    said, faults = calm.communicate(timeout=300)
    assert calm.returncode == 0, faults
    assert f"{CASES} sessions" in said
    stormy = started(version, tmp_path / "stormy")
    lines: list[str] = []
    pids: dict[str, int] = {}
    for line in stormy.stdout:
        lines.append(line)
        if found := re.match(r"Agent-(\w+): pid (\d+)", line):
            pids[found[1]] = int(found[2])
        if len(pids) == 3 and "success" in line:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
            break
    rest, faults = stormy.communicate(timeout=300)
    assert stormy.returncode == 0, faults
    assert f"{CASES} sessions" in rest
    assert "dead letters 0" in rest
    undisturbed, killed = decisions(tmp_path / "calm"), decisions(tmp_path / "stormy")
    assert len(undisturbed) == CASES
    assert killed == undisturbed
    with sqlite3.connect(tmp_path / "stormy" / "store.db") as store:
        ends = Counter(r[0] for r in store.execute("SELECT session FROM history WHERE kind = 'episode_ended'"))
        starts = store.execute("SELECT count(*) FROM history WHERE kind = 'agent_started'").fetchone()[0]
    assert set(ends.values()) == {1}
    assert starts >= 6, "each agent was started again"


def test_refusals(tmp_path: Path) -> None:
    """Another team's version, no version, no scenarios, no such role: exit 2 and one line each."""
    version = tmp_path / "version"
    fresh_version(version)
    from runtime.run import main

    for args in (
        ["shop", "--version", str(version), "--scenarios", "eval:2:1"],
        ["supply_chain", "--version", str(tmp_path / "none"), "--scenarios", "eval:2:1"],
        ["supply_chain", "--version", str(version), "--scenarios", "none.jsonl"],
        ["supply_chain", "--version", str(version), "--scenarios", "eval:2:1", "--debug", "boss"],
    ):
        assert main(args) == 2, args


def test_what_would_do_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bus beside Temporal, a breakpoint there, a Temporal server beside the bus: named, and nothing started."""
    from runtime.run import main

    usual = ["supply_chain", "--version", str(tmp_path), "--scenarios", "eval:2:1"]
    for more, said in (
        (["--temporal", "127.0.0.1:7233"], "--temporal"),
        (["--coordinator", "temporal", "--redis", "embedded"], "--redis"),
        (["--coordinator", "temporal", "--redis", "embedded", "--debug", "triage"], "--redis, --debug"),
    ):
        assert main([*usual, *more]) == 2
        assert said in capsys.readouterr().err
