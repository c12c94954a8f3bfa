"""A Redis that has forgotten everything is filled again from the store."""

import logging

from sqlalchemy import text
from sqlalchemy.engine import Connection

from runtime.bus.event import new_id
from runtime.bus.parts import Parts
from runtime.store import outbox

SET_MARK = text(
    "INSERT INTO marks (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
GET_MARK = text("SELECT value FROM marks WHERE name = :name")
_log = logging.getLogger(__name__)


def refill(parts: Parts) -> bool:
    """Have all unconfirmed events sent again if this is not the Redis that they were sent to; whether it was not.

    A random value stands in Redis and in the store. It is gone from a Redis that was emptied, or is another one.

    Raises:
        redis.RedisError: Redis does not answer.
    """
    if parts.store is None:
        return False
    found = parts.client.get(parts.names.marker)
    known = parts.store.read(lambda c: get_mark(c, parts.names.marker))
    if found and found.decode() == known:
        return False
    marker = found.decode() if found else new_id()

    def again(connection: Connection) -> int:
        set_mark(connection, parts.names.marker, marker)
        return outbox.unsend(connection, parts.team) if known else 0

    count = parts.store.write(again)
    if not found:
        parts.client.set(parts.names.marker, marker, nx=True)
    if known:
        _log.warning("Redis has lost the streams of team %s: %d events are sent again", parts.team, count)
    return bool(known)


def get_mark(connection: Connection, name: str) -> str:
    """A single value that the store keeps; empty: there is none."""
    return connection.execute(GET_MARK, {"name": name}).scalar() or ""


def set_mark(connection: Connection, name: str, value: str) -> None:
    """Keep a single value."""
    connection.execute(SET_MARK, {"name": name, "value": value})
