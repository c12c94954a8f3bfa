"""Where breakers and rate limits keep their state: in memory, or in Redis for all processes together."""

import json
import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from runtime.seams import Clock

if TYPE_CHECKING:
    from redis import Redis

T = TypeVar("T")
State = dict[str, Any]
"""JSON; empty at first."""
Change = Callable[[State], tuple[State, T]]
"""From the state to the new one and an answer; without other effects, since it may be tried more than once."""

KEPT_S = 600
"""How long Redis keeps a state nobody touches (s): far longer than any breaker is open."""
TRIES = 20
"""How often a change is tried when others change the same state: a call is far slower than a change."""
REDIS_S = 0.25
"""How long one look at Redis may take (s): a thousand times what it needs, and little beside a model's answer."""
AWAY_S = 5.0
"""How long Redis is left alone after an error (s), so that not every call waits for its timeout."""

log = logging.getLogger(__name__)


class Shared(Protocol):
    """States by name, each changed by one caller at a time."""

    def update(self, key: str, change: Change[T]) -> T:
        """Apply the change and return its answer."""
        ...

    def close(self) -> None:
        """Let go of what it opened for itself."""
        ...


class InMemory:
    """For one process."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._lock = Lock()

    def update(self, key: str, change: Change[T]) -> T:
        """Apply the change and return its answer."""
        with self._lock:
            self._states[key], answer = change(self._states.get(key, {}))
        return answer

    def close(self) -> None:
        """There is nothing to let go of."""


_SET_IF_SAME = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


def _impatient(redis: "Redis") -> "Redis":
    """A client of the same server that gives up soon, and does not try again by itself."""
    from redis import ConnectionPool, Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    pool: Any = redis.connection_pool
    kwargs: dict[str, Any] = {**pool.connection_kwargs, "socket_timeout": REDIS_S, "socket_connect_timeout": REDIS_S}
    kwargs["retry"] = Retry(NoBackoff(), 0)
    return Redis(connection_pool=ConnectionPool(connection_class=pool.connection_class, **kwargs))


class InRedis:
    """For all processes of one Redis. While it is away, each goes by what it sees itself."""

    def __init__(self, redis: "Redis", prefix: str = "llm:", clock: Clock = time.monotonic) -> None:
        self._redis, self._prefix, self._clock = _impatient(redis), prefix, clock
        self._set_if_same = self._redis.register_script(_SET_IF_SAME)
        self._alone = InMemory()
        self._away_until = 0.0

    def update(self, key: str, change: Change[T]) -> T:
        """Apply the change and return its answer."""
        from redis.exceptions import RedisError

        if self._clock() >= self._away_until:
            try:
                return self._update(self._prefix + key, change)
            except RedisError as error:
                self._away_until = self._clock() + AWAY_S
                log.warning("breakers are not shared for %g s: %s", AWAY_S, error)
        return self._alone.update(key, change)

    def close(self) -> None:
        """Close the connections that it opened for itself."""
        self._redis.close()

    def _update(self, key: str, change: Change[T]) -> T:
        for _ in range(TRIES - 1):
            changed, answer = self._tried(key, change)
            if changed:
                return answer
        return self._tried(key, change)[1]  # everybody changes it at once: this one call may go uncounted

    def _tried(self, key: str, change: Change[T]) -> tuple[bool, T]:
        found: Any = self._redis.get(key)
        before: str = found.decode() if isinstance(found, bytes) else found or ""
        state: State = json.loads(before) if before else {}
        new, answer = change(state)
        if new == state:
            return True, answer
        done = self._set_if_same(keys=[key], args=[before, json.dumps(new, sort_keys=True), KEPT_S])
        return bool(done), answer
