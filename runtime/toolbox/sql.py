"""Tools that ask a database: read-only unless said otherwise, in bounded time, with a bounded number of rows.

db = Database("sqlite:///stock.db", timeout_s=2)
tools = {
    "stock": db.query("stock", "How many of an article are in stock.",
                      "SELECT amount FROM stock WHERE article = :article", {"article": str}),
    "sql": db.free("sql", "Ask the stock database in SQL. Tables: stock(article, amount)."),
}
"""

import base64
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, create_model
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection, Engine, make_url

from runtime.records import Json
from runtime.toolbox.sqlite_guard import guarded
from runtime.types import Outside, Tool

ROWS = 200
"""Rows an answer has, unless said otherwise: more than an agent can take in."""
GRACE_S = 1.0
"""How much longer than the database's own limit the caller waits (s), so that the database's error is the one told."""
ROWS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array"}},
        "truncated": {"type": "boolean"},
        "changed": {"type": "integer"},
    },
    "required": ["columns", "rows", "truncated"],
    "additionalProperties": False,
}


class Database:
    """A database that tools ask. SQLite and PostgreSQL."""

    def __init__(self, url: str, *, timeout_s: float = 5.0, rows: int = ROWS) -> None:
        """Say where it is; nothing is connected yet.

        Args:
            url: ``sqlite:///PATH`` or ``postgresql://…``. Whoever asks has that user's rights: give it few.
            timeout_s: how long one statement may run.
            rows: how many rows an answer has at most; what was left out is marked.
        """
        self._url, self._timeout_s, self._rows = make_url(url), timeout_s, rows
        self._engines: dict[bool, Engine] = {}

    def query(
        self, name: str, description: str, statement: str, args: Mapping[str, Any], *, outside: Outside | None = None
    ) -> Tool:
        """A tool that fills an agent's arguments into a fixed statement.

        Args:
            name: the tool's.
            description: what the agent is told.
            statement: SQL with ``:named`` parameters.
            args: the parameters' Python types.
            outside: of a statement that changes something: its idempotency key (also a ``:named`` parameter) and undo.
                Without it the statement may only read.
        """
        writes = outside is not None
        prepared = text(statement)

        def run(_world: object, **given: Json) -> Json:
            with self._connection(writes=writes) as connection:
                answer = self._answered(connection.execute(prepared, given), told=writes)
                connection.commit()
            return answer

        fields: dict[str, Any] = {k: (t, ...) for k, t in args.items()}
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        return self._tool(name, description, model.model_json_schema(), run, outside)

    def free(self, name: str, description: str) -> Tool:
        """A tool by which an agent asks in SQL of its own; it may only read."""

        def run(_world: object, statement: str) -> Json:
            with self._connection(writes=False) as connection:
                return self._answered(self._one_statement(connection, statement), told=False)

        schema = {
            "type": "object",
            "properties": {"statement": {"type": "string", "description": "One SQL statement that only reads."}},
            "required": ["statement"],
            "additionalProperties": False,
        }
        return self._tool(name, description, schema, run, None)

    def close(self) -> None:
        """Close all connections."""
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()

    def _tool(self, name: str, description: str, schema: dict[str, Any], run: Any, outside: Outside | None) -> Tool:
        bounded = Outside(timeout_s=self._timeout_s + GRACE_S, idempotent=True)
        return Tool(
            name=name,
            description=description,
            input_schema=schema,
            output_schema=ROWS_SCHEMA,
            run=run,
            outside=outside or bounded,
        )

    def _connection(self, *, writes: bool) -> Connection:
        engine = self._engines.get(writes)
        if engine is None:
            engine = self._engines[writes] = self._opened(writes=writes)
        connection = engine.connect()
        if self._url.get_backend_name() == "postgresql":
            connection.execute(text(f"SET TRANSACTION READ {'WRITE' if writes else 'ONLY'}"))
            connection.execute(text(f"SET LOCAL statement_timeout = {int(self._timeout_s * 1000)}"))
        return connection

    def _opened(self, *, writes: bool) -> Engine:
        kind = self._url.get_backend_name()
        if kind == "sqlite":
            return guarded(self._url, self._timeout_s, writes=writes)
        if kind == "postgresql":
            return create_engine(self._url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        raise ValueError(f"{kind} is not supported: use sqlite or postgresql")

    def _one_statement(self, connection: Connection, statement: str) -> Any:
        """The cursor of an agent's own statement. PostgreSQL prepares it, which refuses more than one at a time."""
        cursor: Any = connection.connection.cursor()
        if self._url.get_backend_name() == "postgresql":
            cursor.execute(statement, prepare=True)
        else:
            cursor.execute(statement)
        return cursor

    def _answered(self, result: Any, *, told: bool) -> Json:
        changed = {"changed": max(int(result.rowcount), 0)} if told else {}
        columns = _columns(result)
        if not columns:
            return {"columns": [], "rows": [], "truncated": False, **changed}
        found = result.fetchmany(self._rows + 1)
        rows = [[plain(v) for v in row] for row in found[: self._rows]]
        return {"columns": columns, "rows": rows, "truncated": len(found) > self._rows, **changed}


def _columns(result: Any) -> list[str]:
    if hasattr(result, "returns_rows"):
        return list(result.keys()) if result.returns_rows else []
    return [str(c[0]) for c in result.description or ()]


def plain(value: Any) -> Json:
    """A database's value as JSON can say it."""
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, UUID) else value
