"""The tutorial's files and commands do what the page says, in its order and in one shell, as a reader types them."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.conftest import WaitUntil

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
FILES = re.findall(r"`([\w.]+)`:\n\n```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL)
"""Each file's name and text."""
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SERVER = "python -m serving.run serving.yaml &"
STOP_S = 90.0
"""How long a server may take to stop (s), on a machine that is busy with something else."""
MINUTES = 30
"""What the page promises its reader, training included; each wait of the test is shorter."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Shell:
    """A reader's shell in a folder: what is typed runs in it, and what it says is kept."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.log = folder.parent / "shell.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
        self._typed = 0

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def type(self, command: str, wait_until: WaitUntil, within_s: float) -> str:
        """Run a command to its end; what came of it."""
        self._typed += 1
        mark, before = f"ended-{self._typed}:", len(self.said())
        assert self.process.stdin
        self.process.stdin.write(f"{command}\necho {mark}$?\n")
        self.process.stdin.flush()
        wait_until(lambda: mark in self.said()[before:], command, within_s)
        told = self.said()[before:]
        assert f"{mark}0" in told, f"{command}\n{told}"
        return told

    def close(self) -> None:
        """End whatever still runs in it, as its terminal's hang-up would: the server too, which takes its time."""
        assert self.process.stdin
        self.process.stdin.close()
        os.killpg(self.process.pid, signal.SIGTERM)
        deadline, pause = time.monotonic() + STOP_S, Event()
        while self._alive():
            if time.monotonic() > deadline:
                os.killpg(self.process.pid, signal.SIGKILL)
            pause.wait(0.1)

    def _alive(self) -> bool:
        """Whether anything of it runs; the shell itself is reaped."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty folder with the tutorial's files; the server's port is a free one in place of 8000."""
    folder, port = tmp_path / "desk", free_port()
    folder.mkdir()
    for name, text in FILES:
        (folder / name).write_text(text.replace("8000", str(port)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    opened = Shell(folder, {**os.environ, "PATH": path})
    yield opened
    opened.close()


def test_the_page_has_what_is_run() -> None:
    """The look for files and commands finds them all."""
    assert [name for name, _ in FILES] == ["parcel_desk.py", "parcel_desk.yaml", "serving.yaml", "ask.py"]
    assert SERVER in COMMANDS
    assert COMMANDS[-1] == "python ask.py"


@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES)
@pytest.mark.xdist_group("ray")
def test_a_team_from_nothing_to_a_served_version(shell: Shell, wait_until: WaitUntil) -> None:
    """Checked, trained, deployed, served and asked: the packer weighs, and the clerk's sale ends the session."""
    at = COMMANDS.index(SERVER)
    for command in COMMANDS[:at]:
        shell.type(command, wait_until, within_s=600)
    shell.type(SERVER, wait_until, within_s=30)
    ready = re.search(r"When it says `([^`]*)`", PAGE)
    assert ready
    wait_until(lambda: ready[1] in shell.said(), f"the server to say {ready[1]}", 300)
    said = "".join(shell.type(command, wait_until, within_s=120) for command in COMMANDS[at + 1 :])
    assert re.search(r"^packer \['weigh'", said, re.MULTILINE), said
    assert re.search(r"^clerk .*'sell'", said, re.MULTILINE), said
