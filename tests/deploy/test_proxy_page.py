"""The page about the recording proxy does what it says: files and commands, in one shell, as a reader types them."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.deploy.test_tutorial import Shell, free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proxy.md").read_text()
FILES = re.findall(r"`([\w.]+)`:\n\n```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL)
"""Each file's name and text."""
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
READY = {"runtime.proxy": "recording at", "serving.run": "promote by server"}
"""What a program in the background says when it is up."""
MINUTES = 30


@pytest.fixture
def ports() -> dict[str, str]:
    """Free ports in place of those on the page."""
    return {known: str(free_port()) for known in ("8000", "8010", "8020")}


@pytest.fixture
def folder(tmp_path: Path, ports: dict[str, str]) -> Path:
    """A folder with the page's files."""
    made = tmp_path / "desk"
    made.mkdir()
    for name, text in FILES:
        (made / name).write_text(moved(text, ports))
    return made


@pytest.fixture
def shell(folder: Path) -> Iterator[Shell]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    opened = Shell(folder, {**os.environ, "PATH": path})
    yield opened
    opened.close()


def moved(text: str, ports: dict[str, str]) -> str:
    for known, port in ports.items():
        text = text.replace(known, port)
    return text


def test_the_page_has_what_is_run() -> None:
    """The look for files and commands finds them all."""
    names = ["desk.py", "scripted_model.py", "roles.yaml", "find.py", "desk_team.py", "desk.yaml", "serving.yaml"]
    assert [name for name, _ in FILES] == names
    assert sum("&" in c for c in COMMANDS) == 4
    assert "serving.regressions list" in COMMANDS[-1]


@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES)
@pytest.mark.xdist_group("ray")
def test_a_program_is_recorded_audited_trained_and_served(
    shell: Shell, folder: Path, ports: dict[str, str], wait_until: WaitUntil
) -> None:
    """Untouched: its conversations are records, a team learns from them and plays triage, and a bad one becomes a case.

    Half of the conversations are the version's here, so that there are some of both.
    """
    said: dict[str, str] = {}
    for command in COMMANDS:
        before = len(shell.said())
        said[command] = shell.type(moved(command.replace("10%", "50%"), ports), wait_until, within_s=900)
        up = next((text for name, text in READY.items() if name in command and "&" in command), "")
        wait_until(lambda before=before, up=up: up in shell.said()[before:], f"{command}: {up}", 300)
    told = "".join(said.values())
    assert len(re.findall(r"-> settled: ", told)) == 80
    assert re.search(r"^ .*resolver/0 ", told, re.MULTILINE)
    assert "audit of desk: nothing stops the run" in told
    assert "warm start: triage imitates 120 decisions" in told
    assert "a lost order was not paid back" in said[COMMANDS[-1]]
    assert answered_by_the_version(folder / "proxy" / "store.db", ports["8000"]) > 0


def answered_by_the_version(store: Path, port: str) -> int:
    """How many of triage's questions the trained version answered."""
    from runtime.recorded import recorded_sessions
    from runtime.records import ModelCalled
    from runtime.store import open_store

    opened = open_store(f"sqlite:///{store}")
    records = [r for s in recorded_sessions(opened, "desk") for r in s.told()]
    opened.close()
    return sum(isinstance(r, ModelCalled) and r.model == f"127.0.0.1:{port}/desk/triage" for r in records)
