"""Tools that ask a real PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from runtime.toolbox.sql import Database
from runtime.types import Outside
from tests.conftest import WaitUntil
from tests.toolbox.desk import answered, session

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SERVERS, reason="no PostgreSQL here (apt install postgresql)"),
]


@pytest.fixture(scope="module")
def url(wait_until: WaitUntil) -> Iterator[str]:
    """A server of this module's own, with a table of 30 rows; PostgreSQL refuses to run as root."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bin_dir, data = SERVERS[-1].parent, str(folder / "data")
    made = [str(bin_dir / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, user=user, cwd=folder)
    server = subprocess.Popen(
        [str(bin_dir / "postgres"), "-D", data, "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=user,
        cwd=folder,
    )
    where = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    wait_until(lambda: _filled(where), "the server")
    yield where
    server.terminate()
    server.wait(30)
    shutil.rmtree(folder)


def _filled(where: str) -> bool:
    engine = create_engine(where.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE stock (article TEXT PRIMARY KEY, amount NUMERIC, since DATE)"))
            connection.execute(
                text("INSERT INTO stock SELECT 'a' || i, i + 0.5, DATE '2026-01-01' + i FROM generate_series(1, 30) i")
            )
    except Exception:  # noqa: BLE001 - not up yet
        return False
    finally:
        engine.dispose()
    return True


@pytest.fixture
def stock(url: str) -> Iterator[Database]:
    database = Database(url, timeout_s=1.0, rows=10)
    yield database
    database.close()


def rows(url: str) -> int:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = connection.execute(text("SELECT count(*) FROM stock")).scalar_one()
    engine.dispose()
    return found


def test_values_are_json(stock: Database) -> None:
    """Numbers, dates and texts come as JSON can say them; what is too much is left out and marked."""
    look = stock.query("look", "Look.", "SELECT * FROM stock WHERE article = :article", {"article": str})
    assert answered(session(look), "look", article="a3").value["rows"] == [["a3", 3.5, "2026-01-04"]]
    free = answered(session(stock.free("sql", "Ask.")), "sql", statement="SELECT * FROM stock").value
    assert (len(free["rows"]), free["truncated"]) == (10, True)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stock",
        "WITH gone AS (DELETE FROM stock RETURNING *) SELECT * FROM gone",
        "COMMIT; DELETE FROM stock",
        "SELECT 1; DROP TABLE stock",
        "SET TRANSACTION READ WRITE; DELETE FROM stock",
        "CREATE TABLE other (i int)",
    ],
)
def test_read_only(stock: Database, url: str, statement: str) -> None:
    """Whatever an agent writes in one statement or several, the database stays as it is."""
    assert not answered(session(stock.free("sql", "Ask.")), "sql", statement=statement).ok
    assert rows(url) == 30


def test_nothing_is_left_for_the_next_statement(stock: Database, url: str) -> None:
    """A setting that an agent changes does not outlive its statement: the next one may still only read."""
    at_desk = session(stock.free("sql", "Ask."))
    for statement in (
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET default_transaction_read_only = off",
        "COMMIT",
        "SET statement_timeout = 0",
    ):
        answered(at_desk, "sql", statement=statement)
        assert not answered(at_desk, "sql", statement="DELETE FROM stock").ok
    assert rows(url) == 30


def test_in_bounded_time(stock: Database) -> None:
    """A statement that takes too long is ended by the server."""
    began = time.monotonic()
    answer = answered(session(stock.free("sql", "Ask.")), "sql", statement="SELECT pg_sleep(30)")
    assert time.monotonic() - began < 3.0
    assert answer.fault is not None
    assert "statement timeout" in answer.fault.message


def test_writing_where_it_says_so(stock: Database, url: str) -> None:
    """A fixed statement with ``outside`` commits its change and counts it."""
    statement = "UPDATE stock SET amount = amount + 1 WHERE article = :article"
    take = stock.query("take", "Take.", statement, {"article": str}, outside=Outside())
    assert answered(session(take), "take", article="a3").value["changed"] == 1
    look = stock.query("look", "Look.", "SELECT amount FROM stock WHERE article = :article", {"article": str})
    assert answered(session(look), "look", article="a3").value["rows"] == [[4.5]]
