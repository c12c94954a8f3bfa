"""How a database gets the tables of this program: a new one at once, an older one step by step.

A step that has been released is never changed. Who changes ``tables`` adds the step that does it to an older database.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import Column, Integer, MetaData, Table, select
from sqlalchemy.engine import Connection

from runtime.errors import RepertoryError
from runtime.store.tables import META

Step = Callable[[Connection], None]
VERSION = Table("schema_version", MetaData(), Column("version", Integer, nullable=False))
"""One row: the version of the tables, from 1."""
STEPS: tuple[Step, ...] = ()
"""The first leads from version 1 to 2, and so on."""


class StoreTooNew(RepertoryError):
    """The database was written by a later program than this one."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(found, known)
        self.found, self.known = found, known

    def __str__(self) -> str:
        return f"the store has version {self.found}, this program knows up to {self.known}: use the newer program"


def version(connection: Connection) -> int:
    """The version of the database's tables; 0: it has none."""
    VERSION.create(connection, checkfirst=True)
    return connection.execute(select(VERSION.c.version)).scalar() or 0


def migrate(connection: Connection, steps: Sequence[Step] = STEPS) -> int:
    """Bring the database to the newest version, in the caller's transaction; the version that was found.

    Raises:
        StoreTooNew: it is newer than this program.
    """
    found, newest = version(connection), len(steps) + 1
    if found > newest:
        raise StoreTooNew(found, newest)
    if found == 0:
        META.create_all(connection, checkfirst=False)
    for step in steps[found - 1 :] if found else ():
        step(connection)
    if found < newest:
        connection.execute(VERSION.delete())
        connection.execute(VERSION.insert().values(version=newest))
    return found
