"""Connecting to a Redis, bundled or not, and seeing that it will do."""

from pathlib import Path
from typing import Any, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError
from redis.retry import Retry

from runtime import seams
from runtime.embedded.places import SCHEME, Places
from runtime.errors import ServiceUnavailable

OLDEST = (7, 0)
"""The oldest version that will do: it tells a group's lag, and what XAUTOCLAIM met that is gone."""
CLOCK_S = 10.0
"""How far the server's clock may be from ours (s): ages and leases are compared with it."""
CONNECT_S = 5.0
"""How long connecting may take (s)."""
ANSWER_S = 5.0
"""How long an answer may take (s); reading that waits must wait for less."""
REMOTE = ("redis://", "rediss://", "unix://")
KNOWN = "write `redis: embedded`, redis://HOST:PORT/0 or rediss://HOST:PORT/0"


def connect(declared: str, directory: Path | str | None = None, *, now: seams.Clock = seams.now) -> Any:
    """A client of the Redis that was declared, once its version and its clock have been looked at.

    Args:
        declared: ``embedded`` (with a directory), ``embedded:DIRECTORY``, ``redis://…``, ``rediss://…`` or ``unix://…``.
        directory: where the bundled server was started; for ``embedded`` only.
        now: our clock.

    Raises:
        ServiceUnavailable: nobody answers, the password is wrong, the version is too old, or a clock is off.
    """
    client = client_of(declared, directory)
    name = shown(declared)
    try:
        info = client.info("server")
        theirs = client.time()
    except AuthenticationError as error:
        raise ServiceUnavailable(name, f"refuses us: {error}", "correct the user and password in `redis:`") from None
    except (RedisError, OSError) as error:
        raise ServiceUnavailable(name, f"does not answer: {error}", _start(declared)) from None
    _check(name, info, theirs[0] + theirs[1] / 1e6 - now())
    return client


def client_of(declared: str, directory: Path | str | None = None, **options: Any) -> Any:
    """A client that never tries again by itself: who adds an event twice for a lost answer must know that he does."""
    settings: dict[str, Any] = {
        "socket_timeout": ANSWER_S,
        "socket_connect_timeout": CONNECT_S,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        **options,
    }
    if declared == SCHEME[:-1] or declared.startswith(SCHEME):
        places = Places.of(declared[len(SCHEME) :] or directory or _nowhere())
        return Redis(unix_socket_path=str(places.socket), password=places.password(), **settings)
    if not declared.startswith(REMOTE):
        raise ServiceUnavailable(declared, "is no Redis that is known here", KNOWN)
    try:
        return cast("Any", Redis).from_url(declared, **settings)
    except ValueError as error:
        raise ServiceUnavailable(shown(declared), str(error), KNOWN) from None


def shown(declared: str) -> str:
    """The declared address without its password."""
    scheme, found, rest = declared.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else declared


def _nowhere() -> Path:
    raise ServiceUnavailable("redis: embedded", "has no directory", "pass the directory of the run")


def _check(name: str, info: dict[str, Any], ahead_s: float) -> None:
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    if tuple(int(p) for p in version.split(".")[:2]) < OLDEST:
        raise ServiceUnavailable(name, f"is version {version}", f"use Redis {OLDEST[0]}.{OLDEST[1]} or newer")
    if abs(ahead_s) > CLOCK_S:
        seen = f"its clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} ours"
        raise ServiceUnavailable(name, seen, "set both clocks by NTP")


def _start(declared: str) -> str:
    if declared.startswith(SCHEME[:-1]):
        return "start it: runtime.embedded.serve(directory), or python -m runtime.embedded serve DIRECTORY"
    return "start it, or correct `redis:`"
