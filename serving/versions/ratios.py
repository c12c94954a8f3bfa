"""The canary switch: ``SET TEAM_VERSION_ratio 0.05`` in Redis, taken over into the store when it is valid.

The store holds the ratios that count. A key that is missing (an emptied Redis) is put back; one that an operator has
written is adopted, with who and why where a command wrote it, or refused once and on record.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import Connection

from runtime.access import share_of
from runtime.seams import Clock
from runtime.store import Store
from serving.tables import CHANGES
from serving.versions import ledger
from serving.versions.ledger import Change, Known

BY_HAND = "redis"
"""Who changed a ratio, where only Redis knows."""
SLACK = 1e-9
"""By how much rounding may take a sum of ratios over 1."""


def key_of(team: str, alias: str) -> str:
    """The operator's key."""
    return f"{team}_{alias}_ratio"


def note_key(team: str, alias: str) -> str:
    """Beside it: what we wrote there last, and for which change."""
    return f"serving:{team}:{alias}:ratio"


@dataclass(frozen=True, slots=True)
class Reading:
    """What Redis says of a version's ratio."""

    raw: str
    written: str
    """What we wrote there last; empty: nothing."""
    change: int
    """For which change."""


def put(redis: Any, team: str, alias: str, ratio: float, change: int) -> None:
    """Write a ratio for operators to see. Raises redis.RedisError."""
    raw = f"{ratio:g}"
    note = json.dumps({"raw": raw, "change": change})
    redis.mset({key_of(team, alias): raw, note_key(team, alias): note})


def read(redis: Any, team: str, aliases: Sequence[str]) -> dict[str, Reading | None]:
    """What Redis says of each version; None: nothing. Raises redis.RedisError."""
    if not aliases:
        return {}
    keys = [key_of(team, a) for a in aliases] + [note_key(team, a) for a in aliases]
    found = [None if v is None else v.decode() if isinstance(v, bytes) else str(v) for v in redis.mget(keys)]
    return {a: _reading(raw, note) for a, raw, note in zip(aliases, found, found[len(aliases) :], strict=False)}


def _reading(raw: str | None, note: str | None) -> Reading | None:
    if raw is None:
        return None
    said = json.loads(note) if note else {}
    return Reading(raw, said.get("raw", ""), said.get("change", 0))


def adopt(store: Store, redis: Any, team: str, known: Sequence[Known], clock: Clock) -> bool:
    """Take over what operators have written, and put back what is missing; whether a ratio has changed.

    Raises:
        redis.RedisError: it does not answer; the last valid ratios hold.
    """
    said = read(redis, team, [v.alias for v in known])
    wanted: dict[str, str] = {}
    for version in known:
        reading = said[version.alias]
        if reading is None or _stale(reading, version):
            if version.ratio or reading is not None:
                put(redis, team, version.alias, version.ratio, version.ratio_change)
        elif share_of(reading.raw) != version.ratio:
            wanted[version.alias] = reading.raw
    if not wanted:
        return False
    adopted = store.write(lambda c: _take(c, team, wanted, clock()))
    for alias, (ratio, change) in adopted.items():
        put(redis, team, alias, ratio, change)
    return bool(adopted)


def _stale(reading: Reading, version: Known) -> bool:
    """Whether Redis still holds what we wrote for an earlier change: it was restored, or we are just about to write."""
    return reading.written == reading.raw and reading.change < version.ratio_change


def objection(known: Sequence[Known], wanted: Mapping[str, float | None], current: str) -> str:
    """What speaks against these ratios, beside those that hold; empty: nothing."""
    shares = {v.alias: wanted.get(v.alias, v.ratio) for v in known}
    states = {v.alias: v.state for v in known}
    for alias, ratio in wanted.items():
        if ratio is None:
            return f"the ratio of {alias} is no number from 0 to 1"
        if ratio and states[alias] != "ready":
            return f"{alias} is {states[alias]}: only a version that is ready gets new sessions"
        if ratio and alias == current:
            return f"{alias} is the current version: it gets whatever no canary does"
    total = sum(r or 0 for r in shares.values())
    return f"the ratios would sum to {total:g}, which is over 1" if total > 1 + SLACK else ""


def _take(connection: Connection, team: str, wanted: Mapping[str, str], at: float) -> dict[str, tuple[float, int]]:
    known = ledger.versions(connection, team)
    current, _ = ledger.current(connection, team)
    held = {v.alias: v.ratio for v in known}
    new = {a: share_of(raw) for a, raw in wanted.items() if share_of(raw) != held[a]}
    if said := objection(known, new, current):
        for alias in new:
            _refuse(connection, Change(team=team, version=alias, action="canary_refused", by=BY_HAND, why=said,
                                       what={"raw": wanted[alias]}, at=at))  # fmt: skip
        return {}
    taken: dict[str, tuple[float, int]] = {}
    for alias, ratio in new.items():
        assert ratio is not None, "an objection is raised to what is no ratio"
        what = {"before": held[alias], "ratio": ratio}
        change = ledger.note(
            connection, Change(team=team, version=alias, action="canary", by=BY_HAND, why="", what=what, at=at)
        )
        ledger.set_ratio(connection, team, alias, ratio, change)
        taken[alias] = (ratio, change)
    return taken


def _refuse(connection: Connection, change: Change) -> None:
    """Note a refusal, once for as long as nothing else happens to the version."""
    c = CHANGES.c
    last = select(c.action, c.body).where(c.team == change.team, c.version == change.version).order_by(c.id.desc())
    row = connection.execute(last.limit(1)).one_or_none()
    if row is None or (row.action, json.loads(row.body)) != (change.action, dict(change.what)):
        ledger.note(connection, change)
