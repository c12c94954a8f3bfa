"""How a team's bus is doing: plain numbers, for whoever shows them."""

from typing import Any

from runtime.bus.depth import depths, groups_of
from runtime.bus.names import LOG
from runtime.bus.parts import Parts
from runtime.store import dead, outbox, timers
from runtime.store.outbox import place


def stats(parts: Parts) -> dict[str, Any]:
    """Depth, pending, the oldest pending one's age (s), lag, redeliveries, dead letters, unsent, scheduled, sizes."""
    streams = depths(parts)
    store, team = parts.store, parts.team
    pipeline = parts.client.pipeline(transaction=False)
    for stream in parts.names.all_dead():
        pipeline.xlen(stream)
    buried = sum(pipeline.execute())
    return {
        "depth": {s.stream: s.behind for s in streams},
        "length": {s.stream: s.length for s in streams},
        "pending": {s.stream: s.pending for s in streams},
        "lag": {s.stream: s.lag for s in streams},
        "oldest_pending_s": {s.stream: _oldest(parts, s.stream) if s.pending else 0.0 for s in streams},
        "redeliveries": int(parts.client.hget(parts.names.counts, "redeliveries") or 0),
        "dead_letters": len(store.read(lambda c: dead.letters(c, team))) if store else buried,
        "unsent": store.read(lambda c: outbox.unsent(c, team)) if store else 0,
        "scheduled": len(store.read(lambda c: timers.waiting(c, team))) if store else 0,
        "log_length": parts.client.xlen(LOG),
        "wal_bytes": store.wal_bytes() if store else 0,
    }


def _oldest(parts: Parts, stream: str) -> float:
    """The age (s) of the oldest entry that some group was handed and has not confirmed, by the server's clock."""
    firsts = [parts.client.xpending(stream, g.name)["min"] for g in groups_of(parts, stream) if g.pending]
    seconds, micros = parts.client.time()
    ages = [seconds + micros / 1e6 - place(first.decode())[0] / 1e3 for first in firsts if first]
    return round(max([0.0, *ages]), 3)
