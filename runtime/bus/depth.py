"""How far each group is behind on each stream."""

from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from runtime.bus.parts import Parts
from runtime.store.outbox import place


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """One stream, with the group that is furthest behind."""

    stream: str
    length: int
    """Entries that the stream holds, those that were had included."""
    pending: int
    """Entries that were read and not yet confirmed, over all groups."""
    lag: int
    """Entries that the slowest group has not read."""
    behind: int
    """Entries that the slowest group has not confirmed."""


@dataclass(frozen=True, slots=True)
class Group:
    """A reader group, as Redis tells it."""

    name: str
    pending: int
    last: str
    """The last entry that was handed out."""
    lag: int | None
    """None: Redis does not know, since entries were deleted."""


def depths(parts: Parts) -> list[Depth]:
    """Every stream of the team."""
    streams = parts.names.every()
    pipeline = parts.client.pipeline(transaction=False)
    for stream in streams:
        pipeline.xlen(stream)
        pipeline.execute_command("XINFO", "GROUPS", stream)
    answers = pipeline.execute(raise_on_error=False)
    return [_depth(parts, s, answers[2 * i], answers[2 * i + 1]) for i, s in enumerate(streams)]


def groups_of(parts: Parts, stream: str) -> list[Group]:
    """The groups that a stream has now; none where there is no stream."""
    try:
        return read_groups(parts.client.execute_command("XINFO", "GROUPS", stream))
    except ResponseError as error:
        return read_groups(error)


def read_groups(answer: Any) -> list[Group]:
    """The answer to XINFO GROUPS, or the error that there is no such stream. Other errors are raised."""
    if isinstance(answer, Exception):
        if "no such key" in str(answer).lower():
            return []
        raise answer
    return [_group(g) for g in answer]


def _group(answer: Any) -> Group:
    told: dict[str, Any] = {_text(k): v for k, v in zip(answer[::2], answer[1::2], strict=True)}
    return Group(_text(told["name"]), int(told["pending"]), _text(told["last-delivered-id"]), told.get("lag"))


def _depth(parts: Parts, stream: str, length: Any, answer: Any) -> Depth:
    if isinstance(length, Exception):
        raise length
    groups = read_groups(answer)
    lags = [_lag(parts, stream, g, length) for g in groups] or [length]
    behind = [lag + g.pending for lag, g in zip(lags, groups, strict=False)] or [length]
    return Depth(
        stream=stream, length=length, pending=sum(g.pending for g in groups), lag=max(lags), behind=max(behind)
    )


def _lag(parts: Parts, stream: str, group: Group, length: int) -> int:
    """What Redis says, or where it does not know, a count up to the depth limit."""
    if group.lag is not None:
        return group.lag
    if place(group.last) == (0, 0):
        return length
    return len(parts.client.xrange(stream, f"({group.last}", "+", count=parts.settings.depth_limit + 1))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
