"""One reader's side of a stream: what it reads, holds, takes over and acknowledges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.exceptions import ResponseError

from runtime.bus.names import sweeper
from runtime.bus.parts import Parts

CLAIM = 16
"""Entries taken over from dead readers at once: they are handled one by one."""
IDLE_LEASES = 1.2
"""An entry is taken over when it has been idle for so many leases: who still works renews it five times in one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a stream."""

    id: str
    fields: Mapping[bytes, bytes]
    again: bool = False
    """It may have been handled before."""


class Intake:
    """Reads a stream for a group under a name that stays the same over restarts."""

    def __init__(self, parts: Parts, stream: str, group: str, name: str) -> None:
        self._parts, self.stream, self.group, self.name = parts, stream, group, name
        self._client = parts.reader()
        self._scripts = parts.scripts
        self._cursor = "0-0"

    def ensure(self) -> None:
        """Make the stream and the group where they are missing; it begins with the stream's first entry."""
        ensure_group(self._parts.client, self.stream, self.group)

    def own(self, after: str) -> list[Entry]:
        """What was handed to this name, from an earlier life or an answer that was lost, and is not acknowledged."""
        return self._read(after, self._parts.settings.batch, None, again=True)

    def fresh(self, block_s: float) -> list[Entry]:
        """What nobody of the group has been handed yet; wait for it that long (s)."""
        return self._read(">", self._parts.settings.batch, max(1, int(block_s * 1e3)), again=False)

    def left(self) -> list[Entry]:
        """What readers that died left behind, if this reader is the one to look after it now."""
        lease_ms = int(self._parts.settings.lease_s * 1e3)
        key = sweeper(self.stream, self.group)
        if not self._scripts.lock(keys=[key], args=[self.name, lease_ms], client=self._client):
            self._cursor = "0-0"
            return []
        idle_ms = int(lease_ms * IDLE_LEASES)
        answer = self._client.execute_command(
            "XAUTOCLAIM", self.stream, self.group, self.name, idle_ms, self._cursor, "COUNT", CLAIM
        )
        self._cursor = _text(answer[0])
        return _entries(answer[1], again=True)

    def acknowledge(self, ids: Sequence[str]) -> None:
        """The group is done with these."""
        if ids:
            self._client.execute_command("XACK", self.stream, self.group, *ids)

    def renew(self, ids: Sequence[str]) -> int:
        """Keep the lease on entries; how many are still this reader's. For the heartbeat's thread."""
        return self._scripts.renew(keys=[self.stream], args=[self.group, self.name, *ids]) if ids else 0

    def count(self, what: str, by: int = 1) -> None:
        """Count something that happens rarely, for everybody to see."""
        self._client.hincrby(self._parts.names.counts, what, by)

    def close(self) -> None:
        """Let the connection go."""
        self._client.close()

    def _read(self, place: str, count: int, block_ms: int | None, *, again: bool) -> list[Entry]:
        answer = self._client.xreadgroup(self.group, self.name, {self.stream: place}, count=count, block=block_ms)
        return _entries(answer[0][1], again=again) if answer else []


def ensure_group(client: Any, stream: str, group: str) -> None:
    """Make a group, and its stream, where they are missing."""
    try:
        client.execute_command("XGROUP", "CREATE", stream, group, "0", "MKSTREAM")
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise


def _entries(answer: Iterable[Any], *, again: bool) -> list[Entry]:
    return [Entry(_text(entry), _fields(fields), again) for entry, fields in answer]


def _fields(fields: Any) -> Mapping[bytes, bytes]:
    """An entry that is gone from the stream has none."""
    if isinstance(fields, list):
        flat = cast("list[bytes]", fields)
        return dict(zip(flat[::2], flat[1::2], strict=True))
    return fields or {}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
