"""Looking after events that were sent long ago and never confirmed: are they still where they can be read?"""

from collections.abc import Mapping, Sequence

from runtime.bus.depth import groups_of
from runtime.bus.parts import Parts
from runtime.store import inbox, outbox
from runtime.store.outbox import Row, place

AT_ONCE = 500
"""Events looked for in one round."""


def verify(parts: Parts) -> int:
    """Have events sent again that Redis has lost, such as the end of a log after a failover; how many."""
    store, before = parts.held(), parts.now() - parts.settings.verify_s
    rows = store.read(lambda c: outbox.unconfirmed(c, parts.team, before, AT_ONCE))
    if not rows:
        return 0
    registered = store.read(lambda c: inbox.groups(c, parts.team))
    by_stream: dict[str, list[Row]] = {}
    for row in rows:
        by_stream.setdefault(row.stream, []).append(row)
    missing = [i for stream, sent in by_stream.items() for i in _missing(parts, stream, sent, registered)]
    if missing:
        store.write(lambda c: outbox.unsend(c, parts.team, missing))
    return len(missing)


def _missing(parts: Parts, stream: str, rows: Sequence[Row], registered: Mapping[str, Sequence[str]]) -> list[str]:
    """Ids of those events that are gone, or that a group has passed without having had them."""
    pipeline = parts.client.pipeline(transaction=False)
    for row in rows:
        pipeline.xrange(stream, row.entry, row.entry)
    gone = [row.event_id for row, found in zip(rows, pipeline.execute(), strict=True) if not found]
    passed: set[str] = set()
    for group in groups_of(parts, stream):
        if group.name in registered.get(parts.names.role_of(stream), ()):
            behind = [r for r in rows if r.event_id not in gone and place(r.entry) <= place(group.last)]
            passed.update(_passed(parts, stream, group.name, behind))
    return gone + sorted(passed)


def _passed(parts: Parts, stream: str, group: str, rows: Sequence[Row]) -> list[str]:
    """Ids of events that were handed out to a group, are pending with nobody, and were never had."""
    if not rows:
        return []
    pipeline = parts.client.pipeline(transaction=False)
    for row in rows:
        pipeline.xpending_range(stream, group, row.entry, row.entry, 1)
    idle = [row.event_id for row, pending in zip(rows, pipeline.execute(), strict=True) if not pending]
    had = parts.held().read(lambda c: inbox.outcomes(c, group, idle))  # after the look: who acknowledges has committed
    return [i for i in idle if had.get(i, "replay") == "replay"]
