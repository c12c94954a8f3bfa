"""The README does what it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _blocks(language: str) -> list[str]:
    own = (ROOT / "README.md").read_text().split("## Bring your own team", 1)[1]
    return re.findall(rf"```{language}\n(.*?)```", own, re.DOTALL)


def _python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", *args], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(300)
def test_the_team_of_the_readme_is_sound_and_trains(tmp_path: Path) -> None:
    """Its two files pass the check and train, as they stand, to a result."""
    (tmp_path / "greeter.py").write_text(_blocks("python")[0])
    (tmp_path / "greeter.yaml").write_text(_blocks("yaml")[0])
    checked = _python(tmp_path, "envs.check", "greeter:team")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    ran = _python(tmp_path, "trainers.run", "greeter.yaml", "--set", "stop.iterations=3", "--out", "runs")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (result,) = tmp_path.glob("runs/greeter/*/result.json")
    assert json.loads(result.read_text())["status"] == "done"
