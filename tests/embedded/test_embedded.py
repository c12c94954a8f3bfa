"""The bundled server: private, one a directory, back after any crash with all that was answered."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runtime.embedded import Places, connect, serve
from runtime.embedded.__main__ import main
from runtime.embedded.server import EmbeddedRedis
from runtime.errors import ServiceUnavailable
from tests.conftest import WaitUntil

HOLD = (
    "import sys; from runtime.embedded import serve; s = serve(sys.argv[1]); print(s.pid, flush=True); sys.stdin.read()"
)
"""A process that keeps a directory's server."""


def answers(server: EmbeddedRedis) -> bool:
    try:
        return server.pid > 0
    except Exception:  # noqa: BLE001 - whatever it is, it is no answer
        return False


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that supervises the server of ``tmp_path``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_server_is_private(tmp_path: Path) -> None:
    """It has no port, its socket and password are the user's alone, and a wrong password is refused with the reason."""
    with serve(tmp_path) as server:
        assert psutil.Process(server.pid).net_connections(kind="inet") == []
        assert stat.S_IMODE((tmp_path / "redis.password").stat().st_mode) == 0o600
        assert stat.S_IMODE(server.places.socket.stat().st_mode) == 0o700
        assert (tmp_path / "redis.password").read_text() not in " ".join(psutil.Process(server.pid).cmdline())
        with pytest.raises(ServiceUnavailable, match=r"unix://.*: refuses us: .*; correct the user and password"):
            connect(f"unix://:wrong@{server.places.socket}")


def test_a_killed_server_is_back_with_everything_it_had_answered(tmp_path: Path, wait_until: WaitUntil) -> None:
    """kill -9 of the server: its supervisor starts it again, and the append-only file has all entries."""
    with serve(tmp_path) as server:
        client = connect(server.reference)
        for i in range(200):
            client.xadd("s", {"i": i})
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: server.starts == 2 and answers(server), "the server's return")
        assert client.xlen("s") == 200


def test_a_server_killed_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    """However often it dies before it answers."""
    with serve(tmp_path) as server:
        whole = server._comes_up

        def killed_twice(within_s: float) -> bool:
            if server.starts < 4:
                server._child.kill()
                server._child.wait()
            return whole(within_s)

        monkeypatch.setattr(server, "_comes_up", killed_twice)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: server.starts == 4 and answers(server), "the start that is not disturbed")


def test_with_its_supervisor_the_server_goes_and_the_next_one_has_the_data(
    tmp_path: Path, keeper: subprocess.Popen[str], wait_until: WaitUntil
) -> None:
    """kill -9 of the supervisor leaves no server behind; who opens the directory next finds what was written."""
    pid = int(keeper.stdout.readline())
    connect(Places.of(tmp_path).reference).set("left", "here")
    keeper.kill()
    wait_until(lambda: not psutil.pid_exists(pid), "the end of the server")
    with serve(tmp_path) as server:
        assert connect(server.reference).get("left") == b"here"


def test_who_stands_by_takes_over(tmp_path: Path, keeper: subprocess.Popen[str], wait_until: WaitUntil) -> None:
    """A directory has one supervisor; a second process uses its server, and follows when the first is killed."""
    pid = int(keeper.stdout.readline())
    with serve(tmp_path) as server:
        assert (server.pid, server.starts) == (pid, 0)
        connect(server.reference).set("kept", "1")
        keeper.kill()
        wait_until(lambda: server.starts == 1 and answers(server), "the follower's server")
        assert connect(server.reference).get("kept") == b"1"


def test_a_server_that_was_left_behind_is_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system could not end it with its supervisor, the next one takes it over and ends it at its own end."""
    first = serve(tmp_path)
    pid = first.pid
    first._child, first._pid = None, 0  # as if this supervisor had been killed: it stops nothing
    monkeypatch.setattr(first, "_alive", lambda: True)
    monkeypatch.setattr(first, "_stop", lambda: None)
    first.close()
    with serve(tmp_path) as second:
        assert (second.pid, second.starts) == (pid, 0)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    os.waitpid(pid, 0)


def test_a_stale_socket_and_a_reused_process_id_are_no_obstacle(tmp_path: Path) -> None:
    """A crash of everything leaves files; the next start looks at what they name before it believes them."""
    places = Places.of(tmp_path)
    places.socket.write_text("")
    places.pid.write_text(str(os.getpid()))
    with serve(tmp_path) as server:
        assert server.starts == 1
        assert server.pid != os.getpid()


def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    """A unix socket's path may have 107 bytes; the directory may have more, and is found by others all the same."""
    deep = tmp_path / ("d" * 120) / ("ü" * 60)
    with serve(deep) as server:
        assert len(os.fsencode(server.places.socket)) <= 100
        assert connect("embedded", deep).ping()
        assert stat.S_IMODE(server.places.socket.parent.stat().st_mode) == 0o700


def test_what_cannot_be_reached_is_told_with_the_remedy(tmp_path: Path) -> None:
    """What was declared, what was seen, what to do; no password is shown."""
    for declared, told in (
        ("redis://:secret@127.0.0.1:1/0", r"^redis://127\.0\.0\.1:1/0: does not answer: .*; start it, or correct"),
        ("rediss://127.0.0.1:1/0", "does not answer"),
        (f"embedded:{tmp_path}", r"does not answer: .*; start it: runtime\.embedded\.serve"),
        ("embedded", "has no directory"),
        ("memcached://x", r"is no Redis that is known here; write `redis: embedded`"),
        ("redis://x:port", "port"),
    ):
        with pytest.raises(ServiceUnavailable, match=told) as caught:
            connect(declared)
        assert "secret" not in str(caught.value)


def test_an_old_server_and_a_wrong_clock_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older than 7.0 will not do, nor a clock that is an hour off; 9 s are let pass."""
    with serve(tmp_path) as server:
        import runtime.embedded.client as module
        from runtime.seams import now

        assert connect(server.reference, now=lambda: now() - 9).ping()
        with pytest.raises(ServiceUnavailable, match=r"its clock is 36\d\d s ahead of ours; set both clocks by NTP"):
            connect(server.reference, now=lambda: now() - 3600)
        monkeypatch.setattr(module, "OLDEST", (99, 0))
        with pytest.raises(ServiceUnavailable, match=r"is version \d+\.\d+\.\d+; use Redis 99\.0 or newer"):
            connect(server.reference)


def test_a_command_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``cli DIR COMMAND`` sends one command; without a server it says how to get one."""
    assert main(["cli", str(tmp_path), "PING"]) == 3
    assert "start it" in capsys.readouterr().err
    with serve(tmp_path):
        assert main(["cli", str(tmp_path), "XADD", "s", "1-1", "payload", "täst"]) == 0
        assert main(["cli", str(tmp_path), "XRANGE", "s", "-", "+"]) == 0
        assert main(["cli", str(tmp_path), "NONSENSE"]) == 1
    assert capsys.readouterr().out.splitlines()[:4] == ["1-1", "1) 1) 1-1", "   2) 1) payload", "      2) täst"]
