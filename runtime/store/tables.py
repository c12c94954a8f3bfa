"""The store's tables. Texts that hold JSON end in ``body``; times are Unix times in seconds."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, text

META = MetaData()
COUNTER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up by itself only what is called INTEGER."""


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _time(name: str) -> Column[float]:
    return Column(name, Float, nullable=False, server_default=text("0"))


def _count(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def _table(name: str, *columns: Column[str] | Column[float] | Column[int]) -> Table:
    return Table(name, META, *columns, sqlite_with_rowid=False)


def _counted(name: str, *columns: Column[str] | Column[float] | Column[int]) -> Table:
    return Table(name, META, Column("id", COUNTER, primary_key=True, autoincrement=True), *columns)


MARKS = _table("marks", _key("name"), _text("value"))
"""Single values: where a reader of the complete log is, which Redis was met last."""
OWNERS = _table("owners", _key("owner"), _count("epoch"), _time("at"))
"""Who may write for a role: the newest epoch only."""
SNAPSHOTS = _table(
    "snapshots",
    _key("team"),
    _key("role"),
    _key("session"),
    _text("body"),
    _count("schema", 1),
    _count("epoch"),
    _count("revision", 1),
    _time("at"),
)
"""The state of a role in a session. ``revision`` counts its changes."""
OUTBOX = _counted(
    "outbox",
    _text("team"),
    _text("stream"),
    Column("event_id", Text, nullable=False, unique=True),
    _text("body"),
    _text("entry"),
    _time("at"),
    _time("sent"),
)
"""Accepted events, until every group has confirmed them. ``entry``: the id in the stream; empty while unsent."""
INBOX = _table("inbox", _key("event_id"), _key("grp"), _text("outcome"), _time("at"))
"""Which group has had which event: ``done`` or ``dead``."""
SEQUENCES = _table(
    "sequences", _key("team"), _key("session"), _key("sender"), _key("receiver"), _count("last"), _time("at")
)
"""The last ``seq`` given out."""
CURSORS = _table(
    "cursors",
    _key("team"),
    _key("grp"),
    _key("session"),
    _key("sender"),
    _key("receiver"),
    _count("last"),
    _time("at"),
)
"""The last ``seq`` that a group has had."""
GROUPS = _table("groups", _key("team"), _key("role"), _key("grp"))
"""The groups that must confirm an event before it may be forgotten."""
ATTEMPTS = _table("attempts", _key("event_id"), _key("grp"), _count("attempts"), _text("error"), _time("at"))
"""Tries that were not the first, or failed."""
DEAD = _table(
    "dead_letters",
    _key("event_id"),
    _key("grp"),
    _text("team"),
    _text("stream"),
    _text("body"),
    _text("reason"),
    _count("attempts"),
    _time("at"),
)
"""Events that a group has given up, with the reason."""
SCHEDULED = _table("scheduled", _key("team"), _key("timer"), _time("due"), _time("every_s"), _text("body"))
"""Events to be published later."""
HISTORY = _counted(
    "history", _text("team"), _text("session"), _text("kind"), _text("event_id"), _text("body"), _time("at")
)
"""Records, in the order of their commits."""
PINS = _table("pins", _key("team"), _key("session"), _text("version"), _time("at"), _time("ended"))
"""The version that a session stays with. ``ended``: 0 while it is open."""
FEEDBACK = _counted(
    "feedback", _text("team"), _text("session"), _text("decision"), Column("value", Float), _text("source"), _time("at")
)
"""Rewards from outside."""
FACTS = _table("facts", _key("team"), _key("name"), _text("body"), _time("at"), _text("author"))
FACTS.append_column(Column("version", BigInteger, primary_key=True, autoincrement=False))
"""Every version of every shared fact; the newest holds."""

Index(
    "outbox_unsent",
    OUTBOX.c.team,
    OUTBOX.c.id,
    sqlite_where=OUTBOX.c.entry == "",
    postgresql_where=OUTBOX.c.entry == "",
)
Index("inbox_age", INBOX.c.at)
Index("history_session", HISTORY.c.team, HISTORY.c.session, HISTORY.c.id)
Index("scheduled_due", SCHEDULED.c.team, SCHEDULED.c.due)
Index("feedback_session", FEEDBACK.c.team, FEEDBACK.c.session)
