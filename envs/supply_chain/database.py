"""The records that the tools look into: one SQLite database in memory, rows keyed by case."""

import sqlite3
from collections.abc import Sequence
from threading import local
from typing import Any

from envs.supply_chain.bulletins import ARCHIVE

SCHEMA = """
CREATE TABLE orders (case_id INTEGER, sku TEXT, week TEXT, units INTEGER, invoiced INTEGER, usual INTEGER,
    PRIMARY KEY (case_id, sku, week)) WITHOUT ROWID;
CREATE TABLE inventory (case_id INTEGER, sku TEXT, bin TEXT, booked INTEGER, counted INTEGER, usable INTEGER,
    PRIMARY KEY (case_id, sku, bin)) WITHOUT ROWID;
CREATE TABLE shipments (case_id INTEGER, sku TEXT, shipment TEXT, sailed INTEGER, port_days INTEGER,
    silent_days INTEGER, PRIMARY KEY (case_id, sku, shipment)) WITHOUT ROWID;
CREATE TABLE suppliers (case_id INTEGER, sku TEXT, delivery TEXT, supplier TEXT, days_late INTEGER,
    PRIMARY KEY (case_id, sku, delivery)) WITHOUT ROWID;
CREATE TABLE declarations (case_id INTEGER, sku TEXT, entry TEXT, filed_day INTEGER, released_day INTEGER,
    PRIMARY KEY (case_id, sku, entry)) WITHOUT ROWID;
CREATE TABLE lots (case_id INTEGER, sku TEXT, lot TEXT, defects INTEGER, allowed INTEGER,
    PRIMARY KEY (case_id, sku, lot)) WITHOUT ROWID;
CREATE TABLE carriers (case_id INTEGER, sku TEXT, carrier TEXT, planned INTEGER, driving INTEGER,
    PRIMARY KEY (case_id, sku, carrier)) WITHOUT ROWID;
CREATE TABLE reports (case_id INTEGER, subject TEXT, report TEXT, says TEXT,
    PRIMARY KEY (case_id, subject, report)) WITHOUT ROWID;
CREATE TABLE wire (case_id INTEGER, bulletin INTEGER, published TEXT,
    PRIMARY KEY (case_id, bulletin)) WITHOUT ROWID;
CREATE TABLE bulletins (bulletin INTEGER PRIMARY KEY, headline TEXT, body TEXT);
CREATE VIRTUAL TABLE bulletin_index USING fts5(headline, body, content='bulletins', content_rowid='bulletin');
CREATE TABLE hits (query TEXT, bulletin INTEGER, score REAL,
    PRIMARY KEY (query, bulletin)) WITHOUT ROWID;
"""
"""``bulletins`` is the archive of a news agency, the same in every process; ``wire`` says which of them a case's desk
got, ``hits`` what a search of the whole archive found."""

_OF_CASES = (
    "orders",
    "inventory",
    "shipments",
    "suppliers",
    "declarations",
    "lots",
    "carriers",
    "reports",
    "wire",
    "hits",
)
_KEPT_WRITES = 4096
"""Rows of that many tool calls are kept before the tables are emptied: memory stays flat. A case asked again after
that has its rows written again, the same ones."""


class Database:
    """A connection with the schema and the bulletins. Rows are written when a tool first needs them."""

    def __init__(self, bulletins: Sequence[tuple[int, str, str]]) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)
        self._connection.execute("PRAGMA journal_mode=OFF")
        self._connection.executescript(SCHEMA)
        self._connection.executemany("INSERT INTO bulletins VALUES (?, ?, ?)", bulletins)
        self._connection.execute("INSERT INTO bulletin_index (bulletin_index) VALUES ('rebuild')")
        self.batch = object()
        """Another one each time the tables are emptied: rows written before are gone."""
        self.statements = 0
        """SQL statements run for cases since the start."""
        self._writes = 0
        self._searched: set[str] = set()

    def write(self, insert: str, values: Sequence[Any]) -> None:
        """Add the rows of one tool for one case."""
        if self._writes >= _KEPT_WRITES:
            self._empty()
        self._writes += 1
        self.statements += 1
        self._connection.execute(insert, values)

    def read(self, select: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What the query finds."""
        self.statements += 1
        return self._connection.execute(select, values).fetchall()

    def search(self, insert: str, query: str) -> None:
        """Put what a search finds into a table; once a query, as the archive never changes."""
        if query not in self._searched:
            self._searched.add(query)
            self.statements += 1
            self._connection.execute(insert, (query, query))

    def _empty(self) -> None:
        for table in _OF_CASES:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a fixed list of names
        self._searched.clear()
        self._writes, self.batch = 0, object()


_HERE = local()


def database() -> Database:
    """This thread's database, made when first asked for (a SQLite connection belongs to one thread)."""
    found: Database | None = getattr(_HERE, "database", None)
    if found is None:
        found = _HERE.database = Database(ARCHIVE)
    return found
