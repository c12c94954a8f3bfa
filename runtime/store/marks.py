"""Single values that belong to the store itself."""

import uuid

from sqlalchemy import select, text
from sqlalchemy.engine import Connection

from runtime.store.tables import MARKS

IDENTITY = "identity"
ADD = text("INSERT INTO marks (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING")

PUT = text(
    "INSERT INTO marks (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def identity(connection: Connection) -> str:
    """The store's own name, made when it is first asked for: one that was made anew in the same place has another."""
    connection.execute(ADD, {"name": IDENTITY, "value": uuid.uuid4().hex})
    return connection.execute(select(MARKS.c.value).where(MARKS.c.name == IDENTITY)).scalar_one()


def get(connection: Connection, name: str) -> str | None:
    """A value; None: it was never put."""
    return connection.execute(select(MARKS.c.value).where(MARKS.c.name == name)).scalar()


def put(connection: Connection, name: str, value: str) -> None:
    """Put a value in the place of the one before."""
    connection.execute(PUT, {"name": name, "value": value})
