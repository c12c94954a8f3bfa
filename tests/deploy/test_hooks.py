"""The hooks that other repositories use accept what is right and refuse what is not."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
HOOKS: dict[str, dict[str, Any]] = {h["id"]: h for h in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
GOOD = (ROOT / "experiments" / "bandit.yaml").read_text()


def ran(hook: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """A hook's entry as pre-commit calls it: with the names of files."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [*shlex.split(HOOKS[hook]["entry"]), *map(str, files)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "bad.yaml"
    file.write_text(GOOD.replace("rewards:", "rewrads:"))
    return file


def test_the_manifest_is_one_that_pre_commit_takes() -> None:
    """Its own check of manifests has nothing to say."""
    asked = [BIN / "pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"]
    checked = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_experiment_files_are_accepted_or_refused_with_the_reason(bad: Path) -> None:
    """All files are looked at; one that is refused makes the commit fail."""
    good = ROOT / "experiments" / "bandit.yaml"
    assert ran("experiment-file", good).returncode == 0
    refused = ran("experiment-file", bad, good)
    assert refused.returncode == 2
    assert "rewrads" in refused.stderr


def test_a_service_that_is_away_is_told_and_stops_no_commit(tmp_path: Path, bad: Path) -> None:
    """The file is right: that the service is not there is a matter of this machine, now."""
    file = tmp_path / "away.yaml"
    file.write_text(f"{GOOD}\nredis: redis://127.0.0.1:1/0\n")
    told = ran("doctor", file)
    assert told.returncode == 0, told.stderr
    assert "FAILED" in told.stdout
    assert ran("doctor", bad).returncode == 0


def test_compose_files_are_held_to_the_specification(tmp_path: Path) -> None:
    """The same check as for our own."""
    good, wrong = ROOT / "deploy" / "compose.yaml", tmp_path / "compose.yaml"
    wrong.write_text(good.read_text().replace("depends_on", "depend_on"))
    assert ran("compose", good).returncode == 0
    assert ran("compose", wrong).returncode == 1


@pytest.mark.slow
def test_pre_commit_runs_the_hook_in_a_repository(tmp_path: Path, bad: Path) -> None:
    """A repository of its own, its hooks taken from this one as they are here."""
    hooks, theirs = tmp_path / "hooks", tmp_path / "theirs"
    hooks.mkdir()
    (theirs / "experiments").mkdir(parents=True)
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    shutil.copy(bad, theirs / "experiments" / "bad.yaml")
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment |= {"PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for folder in (hooks, theirs):
        run(folder, "git", "init", "-q")
        run(folder, "git", "add", ".")
        assert run(folder, "git", *who, "commit", "-qm", "a start").returncode == 0
    tried = run(theirs, "pre-commit", "try-repo", str(hooks), "experiment-file", "--all-files")
    assert tried.returncode == 1
    assert "rewrads" in tried.stdout + tried.stderr
