"""The tutorial's files and commands do what the page says, in its order."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.conftest import WaitUntil

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
FILES = re.findall(r"`([\w.]+)`:\n\n```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL)
"""Each file's name and text."""
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SERVER = "python -m serving.run serving.yaml &"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, int, dict[str, str]]:
    """An empty folder with the tutorial's files, the server's port and the environment of a reader's shell."""
    port = free_port()
    for name, text in FILES:
        (tmp_path / name).write_text(text.replace("8000", str(port)).replace("iterations: 30", "iterations: 3"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, port, {**os.environ, "PATH": path, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}


def run(folder: Path, environment: dict[str, str], command: str) -> str:
    ran = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_the_page_has_what_is_run() -> None:
    """The look for files and commands finds them all."""
    assert [name for name, _ in FILES] == ["parcel_desk.py", "parcel_desk.yaml", "serving.yaml", "ask.py"]
    assert SERVER in COMMANDS
    assert COMMANDS[-1] == "python ask.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("ray")
def test_a_team_from_nothing_to_a_served_version(
    place: tuple[Path, int, dict[str, str]], wait_until: WaitUntil
) -> None:
    """Checked, trained (for fewer iterations), deployed, served and asked: the clerk's sale ends the session."""
    folder, port, environment = place
    before, after = COMMANDS[: COMMANDS.index(SERVER)], COMMANDS[COMMANDS.index(SERVER) + 1 :]
    for command in before:
        run(folder, environment, command)
    words = [sys.executable, *SERVER.removesuffix(" &").split()[1:]]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: ready(port, server), "a ready server", within_s=300)
        said = "".join(run(folder, environment, command) for command in after)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=120)
    assert re.search(r"^clerk .*'sell'", said, re.MULTILINE), said


def ready(port: int, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "the server ended"
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz", timeout=2).status_code == 200
    except httpx2.HTTPError:
        return False
