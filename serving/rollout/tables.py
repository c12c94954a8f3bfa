"""The rollouts' own tables in the runtime's store."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.engine import Connection

from runtime.store import Store

META = MetaData()
LOCK = 4_719_203_817
"""PostgreSQL's advisory lock under which the tables are made: any number that nobody else uses."""


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _time() -> Column[float]:
    return Column("at", Float, nullable=False, server_default=text("0"))


OUTCOMES = Table(
    "rollout_outcomes",
    META,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    _text("team"),
    _text("session"),
    _text("aspect"),
    _text("body"),
    _time(),
    Column("taken", Integer, nullable=False, server_default=text("0")),
)
"""What versions are judged by: one row a session and aspect. ``taken``: 1 once it is in a rollout's statistics."""
FEEDBACK_KEYS = Table(
    "rollout_feedback_keys", META, _key("team"), _key("given"), _text("content"), _text("body"), _time()
)
"""What was said under which idempotency key, and what was answered: said again, it changes nothing."""
TRIALS = Table("rollout_trials", META, _key("team"), _text("body"), _time())
"""A team's running rollouts: their statistics, and what has been decided but perhaps not done yet."""
LEASES = Table("rollout_leases", META, _key("team"), _text("holder"), _time())
"""Who judges a team's rollouts. ``at``: when he last said that he is there."""

Index("rollout_outcomes_session", OUTCOMES.c.team, OUTCOMES.c.session, OUTCOMES.c.aspect, unique=True)
Index("rollout_outcomes_new", OUTCOMES.c.team, OUTCOMES.c.taken, OUTCOMES.c.id)


def make_tables(store: Store) -> Store:
    """See that the store has the tables; the store."""
    store.write(_make)
    return store


def _make(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    META.create_all(connection, checkfirst=True)
