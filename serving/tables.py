"""Serving's own tables in the runtime's store, made when a server or a command first opens it."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.engine import Connection

from runtime.store import Store, open_store

META = MetaData()
LOCK = 4_719_203_816
"""PostgreSQL's advisory lock under which the tables are made: any number that nobody else uses."""


def key(name: str) -> Column[str]:
    """A part of what a row is known by."""
    return Column(name, Text, primary_key=True)


def words(name: str) -> Column[str]:
    """Text, or JSON."""
    return Column(name, Text, nullable=False, server_default="")


def real(name: str) -> Column[float]:
    """A share, or a time (Unix time, s)."""
    return Column(name, Float, nullable=False, server_default=text("0"))


def number(name: str) -> Column[int]:
    """A row's number, which counts up by itself."""
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


VERSIONS = Table(
    "serving_versions",
    META,
    key("team"),
    key("alias"),
    _count("number"),
    words("hash"),
    words("state"),
    words("reason"),
    words("lineage_body"),
    real("ratio"),
    _count("ratio_change"),
    real("at"),
)
"""A team's versions. ``ratio``: the canary share that holds; ``ratio_change``: the change that set it."""
TEAMS = Table("serving_teams", META, key("team"), words("current"), words("before"))
"""Which version new sessions get, and which one did before."""
CHANGES = Table(
    "serving_changes",
    META,
    number("id"),
    words("team"),
    words("version"),
    words("action"),
    words("by"),
    words("why"),
    words("body"),
    real("at"),
)
"""Every change, by whom and why. Rows are added, and the database refuses to change or remove one."""
TURNS = Table("serving_turns", META, key("team"), key("session"), key("turn"), words("body"), real("at"))
"""What each turn answered, by its key: asked again, it is answered the same."""

Index("serving_versions_hash", VERSIONS.c.team, VERSIONS.c.hash, unique=True)
Index("serving_versions_number", VERSIONS.c.team, VERSIONS.c.number, unique=True)
Index("serving_changes_team", CHANGES.c.team, CHANGES.c.id)

APPEND_ONLY = {
    "sqlite": tuple(
        f"CREATE TRIGGER IF NOT EXISTS serving_changes_{verb} BEFORE {verb} ON serving_changes "
        "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
        for verb in ("update", "delete")
    ),
    "postgresql": (
        """CREATE OR REPLACE FUNCTION serving_append_only() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the history is append-only'; END $$""",
        """CREATE OR REPLACE TRIGGER serving_changes_kept BEFORE UPDATE OR DELETE ON serving_changes
        FOR EACH STATEMENT EXECUTE FUNCTION serving_append_only()""",
    ),
}


def open_serving_store(url: str) -> Store:
    """The runtime's store, with serving's tables in it. Raises ServiceUnavailable."""
    store = open_store(url)
    store.write(_make)
    return store


def make(connection: Connection, meta: MetaData) -> None:
    """Make the tables that are missing, one process at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    meta.create_all(connection, checkfirst=True)


def _make(connection: Connection) -> None:
    make(connection, META)
    for statement in APPEND_ONLY[connection.dialect.name]:
        connection.exec_driver_sql(statement)
