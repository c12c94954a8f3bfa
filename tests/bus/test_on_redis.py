"""Debian's Redis 7.0 over TLS and TCP: stopped for ten seconds, killed, and its answers lost on the way."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from random import Random

import pytest
from redis import Redis
from redis.exceptions import RedisError

from runtime.bus import BusSettings, EventBus
from runtime.embedded import connect
from runtime.errors import ServiceUnavailable
from tests.bus.conftest import QUICK
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

PROGRAM = shutil.which("redis-server")
GROUPS = ("role", "recorder", "audit")
STOPPED_S = 10.0

pytestmark = [
    pytest.mark.slow,
    # redis-py leaves a connection that fails in its TLS handshake to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(not PROGRAM, reason="no redis-server here: apt install redis-server"),
]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A Redis of Debian's with a password and AOF, on TCP or TLS of 127.0.0.1."""

    def __init__(self, directory: Path, *, tls: bool) -> None:
        self.directory, self.port, self.tls = directory, free_port(), tls
        if tls:
            _certificate(directory)
        self.start()

    @property
    def url(self) -> str:
        if self.tls:
            return f"rediss://:secret@127.0.0.1:{self.port}/0?ssl_ca_certs={self.directory}/cert.pem"
        return f"redis://:secret@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it on the same port and directory, and wait until it answers."""
        files = ("--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-auth-clients", "no")
        ports = ("--port", "0", "--tls-port", str(self.port), *files) if self.tls else ("--port", str(self.port))
        kept = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--requirepass", "secret")
        where = ("--bind", "127.0.0.1", "--dir", str(self.directory), "--logfile", "log")
        self.process = subprocess.Popen([str(PROGRAM), *ports, *kept, *where], cwd=self.directory)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(RedisError), Redis.from_url(self.url) as client:
                client.ping()
                return
            threading.Event().wait(0.05)
        pytest.fail((self.directory / "log").read_text()[-2000:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _certificate(directory: Path) -> None:
    """A certificate for 127.0.0.1, signed by itself."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    out = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*made, *out], cwd=directory, check=True, capture_output=True)


class LosingProxy:
    """Passes requests on to a Redis; while it is losing, now and then breaks a connection in place of its answer."""

    def __init__(self, port: int, *, lose: float, seed: int) -> None:
        self._upstream, self._lose, self._random = port, lose, Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.lost = self._listener.getsockname()[1], 0
        self.losing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._upstream))
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, sink, answers), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and self.losing and self._random.random() < self._lose:
                    self.lost += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, tls=True)
    yield server
    server.kill()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, tls=False)
    yield server
    server.kill()


@contextlib.contextmanager
def a_bus(url: str, directory: Path, settings: BusSettings = QUICK) -> Generator[EventBus]:
    """A bus with one reader of each group."""
    bus = EventBus(url, f"sqlite:///{directory}/store.db", team="shop", roles=("ear", "caller"), settings=settings)
    try:
        bus.start()
        for group in GROUPS:
            bus.consumer(group, "ear", f"{group}-0", writes_down).start()
        yield bus
    finally:
        bus.stop()


def once_each(bus: EventBus, count: int) -> bool:
    return sorted(noted(bus), key=int) == [str(n) for n in range(count) for _ in GROUPS]


def all_of(bus: EventBus, count: int) -> bool:
    return len(noted(bus)) >= count * len(GROUPS)


def test_over_tls_killed_and_stopped(tls: Server, tmp_path: Path, wait_until: WaitUntil) -> None:
    """A certificate that is checked, a password, kill -9, then 10 s in which it answers nothing: all once."""
    with a_bus(tls.url, tmp_path) as bus:
        bus.publish_all([said(n) for n in range(100)])
        wait_until(lambda: all_of(bus, 50), "half of the events", 60)
        tls.kill()
        bus.publish_all([said(n) for n in range(100, 150)])  # accepted: the outbox keeps them
        tls.start()
        wait_until(lambda: all_of(bus, 150), "what was sent before and meanwhile", 60)
        os.kill(tls.process.pid, signal.SIGSTOP)
        bus.publish_all([said(n) for n in range(150, 200)])
        threading.Event().wait(STOPPED_S)
        os.kill(tls.process.pid, signal.SIGCONT)
        wait_until(lambda: all_of(bus, 200), "what was sent in the pause", 60)
        assert once_each(bus, 200)


def test_a_certificate_of_someone_else_and_a_wrong_password_are_refused(tls: Server) -> None:
    """By what was declared, without the password."""
    stranger = tls.url.partition("?")[0]
    with pytest.raises(ServiceUnavailable, match=r"rediss://127\.0\.0\.1.*does not answer.*[cC]ertificate"):
        connect(stranger)
    with pytest.raises(ServiceUnavailable, match="refuses us") as refused:
        connect(tls.url.replace("secret", "guessed"))
    assert "guessed" not in str(refused.value)


@pytest.mark.timeout(180)
def test_lost_answers_are_no_second_events(plain: Server, tmp_path: Path, wait_until: WaitUntil) -> None:
    """An XADD whose answer is lost is sent again, a read whose answer is lost is read again: effects once."""
    proxy = LosingProxy(plain.port, lose=0.05, seed=1)
    try:
        with a_bus(f"redis://:secret@127.0.0.1:{proxy.port}/0", tmp_path) as bus:
            proxy.losing = True
            for n in range(0, 1000, 10):
                bus.publish_all([said(k) for k in range(n, n + 10)])
                threading.Event().wait(0.01)
            wait_until(lambda: proxy.lost >= 10, "lost answers", 60)
            proxy.losing = False
            wait_until(lambda: all_of(bus, 1000), "all events", 90)
            assert once_each(bus, 1000)
    finally:
        proxy.close()
