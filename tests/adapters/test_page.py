"""The page on bringing a team does what it says: its teams are sound as they stand, its graph trains."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envs.session import Session
from trainers.new import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bring-your-team.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`([\w.]+)`[^`\n]*:\n\n```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL))
"""Each file's name and text."""
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def python(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_page_has_what_is_run() -> None:
    """The look for files and commands finds them all."""
    assert list(FILES) == ["loop_desk.py", "graph_desk.py", "graph_desk.yaml", "agents_desk.py"]
    assert COMMANDS[0] == "python -m trainers.new bakery"
    assert COMMANDS[-1] == "python -m trainers.run graph_desk.yaml"


@pytest.mark.parametrize("name", ["loop_desk", "graph_desk", "agents_desk"])
def test_its_teams_are_sound(name: str, folder: Path) -> None:
    """As they stand, without a network: nothing is wrong with them."""
    checked = python(folder, "envs.check", name, "--episodes", "4")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", ["loop_desk", "graph_desk", "agents_desk"])
def test_its_teams_can_settle_a_case(name: str, folder: Path) -> None:
    """Looked up, passed on and settled rightly: a success in each of them."""
    names: dict[str, object] = {"__name__": name}
    exec(compile(FILES[f"{name}.py"], f"{name}.py", "exec"), names)  # noqa: S102 - our own page
    team = names["team"]()
    scenario = team.generate("eval", 2, 0)
    session = Session(team, scenario)
    for tool in ("look_up", "hand_over", "settle"):
        seen = session.observe(session.to_act[0])
        calls = [c for c in seen.candidates if c.tool == tool]
        session.act(
            seen.agent, next(c for c in calls if c.args.get("how", scenario.truth["how"]) == scenario.truth["how"])
        )
    assert session.ended
    assert session.success


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["loop_desk", "graph_desk", "agents_desk"])
def test_what_its_teams_are_paid_for_is_honest(name: str, folder: Path) -> None:
    """The audit finds no error: what is right cannot be told before an order has been looked up."""
    (folder / f"{name}.yaml").write_text(FILES["graph_desk.yaml"].replace("graph_desk", name))
    audited = python(folder, "rewards.audit", f"{name}.yaml")
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_its_first_command_is_there(tmp_path: Path) -> None:
    """``trainers.new`` writes the folder that the others are run in; tests of it are elsewhere."""
    assert main([COMMANDS[0].split()[-1], "--to", str(tmp_path)]) == 0
    assert (tmp_path / "bakery" / "bakery.yaml").is_file()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("ray")
def test_its_graph_trains(folder: Path) -> None:
    """Through audit and gates, on real actors, to the best there is; no model is asked, since none is there."""
    ran = python(folder, *COMMANDS[-1].split()[2:])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (result,) = folder.glob("runs/graph_desk/*/result.json")
    assert json.loads(result.read_text())["eval"]["return_mean"] == pytest.approx(0.95, abs=0.1)
