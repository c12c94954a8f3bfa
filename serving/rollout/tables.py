"""The rollouts' own tables in the runtime's store."""

from sqlalchemy import Column, Index, Integer, MetaData, Table, text

from runtime.store import Store
from serving.tables import key, make, number, real, words

META = MetaData()

OUTCOMES = Table(
    "rollout_outcomes",
    META,
    number("id"),
    words("team"),
    words("session"),
    words("aspect"),
    words("body"),
    real("at"),
    Column("taken", Integer, nullable=False, server_default=text("0")),
)
"""What versions are judged by: one row a session and aspect. ``taken``: 1 once it is in a rollout's statistics."""
FEEDBACK_KEYS = Table(
    "rollout_feedback_keys", META, key("team"), key("given"), words("content"), words("body"), real("at")
)
"""What was said under which idempotency key, and what was answered: said again, it changes nothing."""
TRIALS = Table("rollout_trials", META, key("team"), words("body"), real("at"))
"""A team's running rollouts: their statistics, and what has been decided but perhaps not done yet."""
LEASES = Table("rollout_leases", META, key("team"), words("holder"), real("at"))
"""Who judges a team's rollouts. ``at``: when he last said that he is there."""

Index("rollout_outcomes_session", OUTCOMES.c.team, OUTCOMES.c.session, OUTCOMES.c.aspect, unique=True)
Index("rollout_outcomes_new", OUTCOMES.c.team, OUTCOMES.c.taken, OUTCOMES.c.id)


def make_tables(store: Store) -> Store:
    """See that the store has the tables; the store."""
    store.write(lambda c: make(c, META))
    return store
