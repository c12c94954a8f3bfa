"""Cutting streams: never below what any registered group still needs."""

from collections.abc import Sequence

from redis.exceptions import ResponseError

from runtime.bus.depth import Group, groups_of
from runtime.bus.names import LOG
from runtime.bus.parts import Parts
from runtime.store import inbox, outbox
from runtime.store.outbox import place

FORGET = 2_000
"""Rows of the outbox that are forgotten at once."""


def trim(parts: Parts) -> None:
    """Cut all of the team's streams, and the complete log by age."""
    registered = parts.store.read(lambda c: inbox.groups(c, parts.team)) if parts.store else {}
    for role in parts.names.roles:
        for stream in parts.names.streams(role):
            if parts.settings.safety.safe_trim:
                _safely(parts, stream, registered.get(role, []))
            else:
                _by_length(parts, stream)
    oldest = int((parts.now() - parts.settings.log_s) * 1e3)
    parts.client.execute_command("XTRIM", LOG, "MINID", "~", max(0, oldest))


def _safely(parts: Parts, stream: str, registered: Sequence[str]) -> None:
    groups = groups_of(parts, stream)
    if groups and set(registered) <= {g.name for g in groups}:
        lowest = min((_needs(parts, stream, g) for g in groups), key=place)
        if place(lowest) > (0, 0):
            parts.client.execute_command("XTRIM", stream, "MINID", lowest)
    if parts.store and registered:
        while _forget(parts, stream, registered):
            pass


def _needs(parts: Parts, stream: str, group: Group) -> str:
    """The oldest entry that a group may still ask for: its oldest pending one, else the last it was handed."""
    if not group.pending:
        return group.last
    try:
        pending = parts.client.xpending(stream, group.name)
    except ResponseError:
        return "0-0"  # the group is gone since we looked
    return pending["min"].decode() if pending["min"] else group.last


def _forget(parts: Parts, stream: str, groups: Sequence[str]) -> bool:
    """Let the outbox forget what every group has confirmed; whether there may be more."""
    store = parts.held()
    ids = store.read(lambda c: outbox.confirmed(c, stream, groups, FORGET))
    if ids:
        store.submit(lambda c: outbox.forget(c, ids), durable=False).result()
    return len(ids) == FORGET


def _by_length(parts: Parts, stream: str) -> None:
    """As it is often done, and wrong: whoever is slower than the length is long has lost what was cut."""
    parts.client.execute_command("XTRIM", stream, "MAXLEN", parts.settings.trim_length)
    first = parts.client.xrange(stream, count=1)
    if first and parts.store:
        left = first[0][0].decode()
        parts.store.write(lambda c: outbox.forget_up_to(c, stream, left))
