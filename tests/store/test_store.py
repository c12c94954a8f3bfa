"""The store: transactions that stand or fall alone, committed together; several processes; a WAL that stays small."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

import runtime.store.sqlite as module
from runtime.errors import ServiceUnavailable
from runtime.store import Store, StoreBusy, StoreTooNew, open_store
from runtime.store.migrations import STEPS, VERSION, migrate, version
from tests.conftest import WaitUntil

WRITER = """
import sys
from sqlalchemy import text
from runtime.store import open_store
store = open_store(sys.argv[1], "normal")
print("open", flush=True)
for i in range(int(sys.argv[2])):
    store.write(lambda c: c.execute(text("UPDATE counter SET n = n + 1")))
    print(i, flush=True)
store.close()
"""
"""Another process that counts up."""
HOLDER = """
import sqlite3, sys, fcntl, os
lock = os.open(sys.argv[1] + ".lock", os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
"""Another process that has its turn, and does not end it."""


def count(connection: Connection) -> int:
    return connection.execute(text("SELECT n FROM counter")).scalar_one()


def up(connection: Connection) -> int:
    return connection.execute(text("UPDATE counter SET n = n + 1 RETURNING n")).scalar_one()


def with_counter(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE counter (n INTEGER PRIMARY KEY)"))
    connection.execute(text("INSERT INTO counter VALUES (0)"))


def test_what_is_written_is_read(store: Store, url: str) -> None:
    """Also by who opens the store later; the tables are made once."""
    store.write(with_counter)
    assert [store.write(up) for _ in range(3)] == [1, 2, 3]
    store.close()
    again = open_store(url)
    assert again.read(count) == 3
    again.close()


def test_a_transaction_that_raises_undoes_itself_and_no_other(store: Store) -> None:
    """Many wait and are committed together; the one that fails is the only one that hears of it."""
    store.write(with_counter)

    def fails(connection: Connection) -> None:
        up(connection)
        connection.execute(text("INSERT INTO counter VALUES (1000), (1000)"))

    jobs: list[Future[Any]] = [store.submit(fails if i % 5 == 0 else up) for i in range(50)]
    wait_for(jobs)
    assert store.read(count) == 40
    assert [type(j.exception()) for j in jobs[::5]] == [IntegrityError] * 10
    assert sorted(j.result() for i, j in enumerate(jobs) if i % 5) == [*range(1, 41)]


def test_transactions_that_wait_together_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Group commit: one sync of the disk for all that came while the last one was under way."""
    store = open_store(f"sqlite:///{tmp_path}/s.db", "full")
    store.write(with_counter)
    commits: list[int] = []
    whole = module._commit
    monkeypatch.setattr(module, "_commit", lambda c, jobs: (commits.append(len(jobs)), whole(c, jobs))[1])
    begun, go = threading.Event(), threading.Event()

    def long(_: Connection) -> None:
        begun.set()
        go.wait()

    first = store.submit(long)
    begun.wait()
    jobs = [store.submit(up) for _ in range(100)]
    go.set()
    wait_for([first, *jobs])
    assert commits == [1, 100]
    store.close()


def test_processes_take_turns(store: Store, url: str) -> None:
    """Several write to one store, and no update is lost."""
    store.write(with_counter)
    others = [subprocess.Popen([sys.executable, "-c", WRITER, url, "40"], stdout=subprocess.DEVNULL) for _ in range(2)]
    for _ in range(40):
        store.write(up)
    assert [o.wait(60) for o in others] == [0, 0]
    assert store.read(count) == 120


def test_a_killed_writer_blocks_nobody_and_what_it_committed_is_there(tmp_path: Path) -> None:
    """kill -9 of a process that writes: its transactions are there or not, the file is sound, others go on."""
    url = f"sqlite:///{tmp_path}/s.db"
    store = open_store(url, "normal")
    store.write(with_counter)
    for _ in range(3):
        before = store.read(count)
        other = subprocess.Popen([sys.executable, "-c", WRITER, url, "100000"], stdout=subprocess.PIPE, text=True)
        assert other.stdout
        told = 0
        while told < 20:
            line = other.stdout.readline().strip()
            told = int(line) if line.isdigit() else 0
        other.kill()
        last = [int(x) for x in other.stdout.read().split()]
        other.wait()
        other.stdout.close()
        assert store.read(count) >= before + max([told, *last]) + 1
        store.write(up)
    assert store.read(lambda c: c.execute(text("PRAGMA integrity_check")).scalar()) == "ok"
    store.close()


def test_who_waits_too_long_is_told_and_nothing_is_done(tmp_path: Path) -> None:
    """A process was stopped in its turn: the error says so, and the work is not done later behind one's back."""
    store = open_store(f"sqlite:///{tmp_path}/s.db", "normal")
    store.write(with_counter)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "s.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin
    assert holder.stdout
    holder.stdout.readline()
    os.kill(holder.pid, signal.SIGSTOP)
    with pytest.raises(StoreBusy, match=r"was busy for 0\.2 s: is a process that writes to it stopped"):
        store.write(up, within_s=0.2)
    os.kill(holder.pid, signal.SIGCONT)
    holder.communicate("")
    assert store.write(up) == 1
    store.close()


def test_the_wal_is_bounded_whatever_readers_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    """A reader that looks for long keeps the WAL from shrinking; when it ends, the next commits empty it."""
    monkeypatch.setattr(module, "WAL_LIMIT", 100_000)
    monkeypatch.setattr(module, "CHECKPOINT_S", 0.0)
    store = open_store(f"sqlite:///{tmp_path}/s.db", "normal")
    store.write(lambda c: c.execute(text("CREATE TABLE big (body TEXT)")))
    reader = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM big").fetchone()
    monkeypatch.setattr(module, "BUSY_MS", 10)

    def add() -> None:
        store.write(lambda c: c.execute(text("INSERT INTO big VALUES (:body)"), {"body": "x" * 10_000}))

    store.write(lambda c: c.execute(text("PRAGMA busy_timeout=10")))
    for _ in range(30):
        add()
    assert store.wal_bytes() > 100_000
    reader.execute("ROLLBACK")
    reader.close()
    add()
    assert store.wal_bytes() < 100_000
    store.close()


def test_a_new_store_has_the_newest_version_and_a_newer_one_is_refused(store: Store, url: str) -> None:
    """The version stands in the store; a later program's is not touched."""
    assert store.read(version) == len(STEPS) + 1
    store.write(lambda c: c.execute(VERSION.update().values(version=99)))
    with pytest.raises(StoreTooNew, match="the store has version 99, this program knows up to 1"):
        open_store(url)


def test_an_older_store_is_brought_up_to_date_step_by_step(store: Store) -> None:
    """Steps that were taken are not taken again; one that fails leaves the store as it was."""

    def second(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE pins ADD COLUMN note TEXT"))

    def third(connection: Connection) -> None:
        connection.execute(text("UPDATE pins SET note = 'new'"))

    def broken(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE pins ADD COLUMN other TEXT"))
        raise ValueError("half way")

    assert store.write(lambda c: migrate(c, [second])) == 1
    assert store.write(lambda c: migrate(c, [second, third])) == 2
    with pytest.raises(ValueError, match="half way"):
        store.write(lambda c: migrate(c, [second, third, broken]))
    assert store.read(version) == 3
    with pytest.raises(Exception, match="other"):
        store.read(lambda c: c.execute(text("SELECT other FROM pins")))


def test_what_is_no_store_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """What was declared, what is wrong, what to write."""
    for bad, told in (
        ("mongodb://x", "is no store that is known here; write sqlite:///"),
        ("sqlite://", "is no store that is known here"),
        ("nonsense", "is no URL"),
        ("postgresql://u:secret@127.0.0.1:1/x", r"postgresql\+?\w*://u:\*\*\*@127.0.0.1:1/x: .*; start PostgreSQL"),
    ):
        with pytest.raises(ServiceUnavailable, match=told) as error:
            open_store(bad)
        assert "secret" not in str(error.value)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Closing finishes what waits; twice is no error; afterwards nothing is taken."""
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    last = store.submit(with_counter)
    store.close()
    store.close()
    assert last.done()
    with pytest.raises(RuntimeError, match="the store is closed"):
        store.write(up)
