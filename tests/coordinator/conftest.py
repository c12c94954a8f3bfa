"""A real Temporal server of the test's own, that can be killed and started again on the same file."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.coordinator.temporal import reachable
from runtime.errors import ServiceUnavailable
from tests.conftest import WaitUntil


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


@dataclass
class Server:
    """A Temporal server on a file."""

    file: Path
    ports: list[int]
    wait: WaitUntil
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def start(self) -> None:
        port, ui, metrics = map(str, self.ports)
        self.process = subprocess.Popen(
            [
                str(Path(sys.executable).parent / "temporal"), "server", "start-dev", "--ip", "127.0.0.1",
                "--port", port, "--ui-port", ui, "--metrics-port", metrics, "--db-filename", str(self.file),
                "--log-level", "error",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(self.file.parent)},
        )  # fmt: skip
        self.wait(self._answers, "the Temporal server", 60)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _answers(self) -> bool:
        with socket.socket() as tried:
            tried.settimeout(1)
            if tried.connect_ex(("127.0.0.1", self.ports[0])):
                return False
        try:
            reachable(self.address)
        except ServiceUnavailable:
            return False
        return True


@pytest.fixture
def temporal(tmp_path: Path, wait_until: WaitUntil) -> Iterator[Server]:
    server = Server(tmp_path / "temporal.db", _free_ports(3), wait_until)
    server.start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.process.terminate()
        server.process.wait(20)
