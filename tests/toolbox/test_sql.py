"""Tools that ask a database."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.toolbox.sql import Database
from runtime.types import Outside
from tests.toolbox.desk import answered, session

FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "stock.db"
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE stock (article TEXT PRIMARY KEY, amount INTEGER)")
        made.executemany("INSERT INTO stock VALUES (?, ?)", [(f"a{i:02}", i) for i in range(30)])
    made.close()
    return file


@pytest.fixture
def stock(path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{path}", timeout_s=0.3, rows=10)
    yield database
    database.close()


def test_a_fixed_statement(stock: Database) -> None:
    """An agent's arguments fill a statement's parameters, typed and never as text in it."""
    look = stock.query("look", "Look.", "SELECT amount FROM stock WHERE article = :article", {"article": str})
    at_desk = session(look)
    found = answered(at_desk, "look", article="a07").value
    assert found == {"columns": ["amount"], "rows": [[7]], "truncated": False}
    assert answered(at_desk, "look", article="' OR 1=1 --").value["rows"] == []
    wrong = answered(at_desk, "look", article=7)
    assert wrong.fault is not None
    assert wrong.fault.code == "bad_arguments"


def test_an_agents_own_statement(stock: Database) -> None:
    """An agent may ask in SQL of its own; what is too much is left out, and the answer says so."""
    free = stock.free("sql", "Ask.")
    found = answered(session(free), "sql", statement="SELECT * FROM stock ORDER BY amount").value
    assert found["columns"] == ["article", "amount"]
    assert (len(found["rows"]), found["truncated"]) == (10, True)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stock",
        "INSERT INTO stock VALUES ('x', 1)",
        "DROP TABLE stock",
        "UPDATE stock SET amount = 0 WHERE article IN (SELECT article FROM stock)",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "ATTACH DATABASE 'other.db' AS other",
        "CREATE TEMP TABLE t (i)",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM stock",
        "VACUUM INTO 'copy.db'",
    ],
)
def test_read_only(stock: Database, path: Path, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an agent writes, the database stays as it is, and no other file appears."""
    monkeypatch.chdir(path.parent)
    before = path.read_bytes()
    answer = answered(session(stock.free("sql", "Ask.")), "sql", statement=statement)
    assert not answer.ok
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["stock.db"]


def test_in_bounded_time(stock: Database) -> None:
    """A statement that would never end is ended by the database."""
    began = time.monotonic()
    answer = answered(session(stock.free("sql", "Ask.")), "sql", statement=FOREVER)
    assert time.monotonic() - began < 1.5
    assert answer.fault is not None
    assert "interrupted" in answer.fault.message


def test_a_fixed_statement_may_write_where_it_says_so(stock: Database, path: Path) -> None:
    """Without ``outside`` a statement cannot write; with it, its change is committed and counted."""
    statement = "UPDATE stock SET amount = amount - 1 WHERE article = :article"
    refused = stock.query("take", "Take one.", statement, {"article": str})
    assert not answered(session(refused), "take", article="a07").ok
    allowed = stock.query("take", "Take one.", statement, {"article": str}, outside=Outside())
    assert answered(session(allowed), "take", article="a07").value["changed"] == 1
    with sqlite3.connect(path) as made:
        assert made.execute("SELECT amount FROM stock WHERE article = 'a07'").fetchone() == (6,)
    made.close()


def test_a_key_in_the_statement(stock: Database, path: Path) -> None:
    """The idempotency key is a parameter of the statement, so that a decision carried out twice writes once."""
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE orders (key TEXT PRIMARY KEY, article TEXT)")
    made.close()
    statement = "INSERT INTO orders VALUES (:key, :article) ON CONFLICT DO NOTHING"
    order = stock.query("order", "Order.", statement, {"article": str}, outside=Outside(key="key"))
    assert [answered(session(order), "order", article="a01").value["changed"] for _ in range(2)] == [1, 0]
