"""A session's records in the order of a trace: which event brought which decisions about, and which tries failed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.bus.event import derived_id
from runtime.records import (
    AnyRecord,
    DecisionRecord,
    EpisodeEnded,
    EpisodeOpened,
    Observed,
    Redelivered,
    StateChanged,
)
from runtime.store.history import Noted

ROLE = "role"
"""The bus' group of a role's own reader, which events are derived by."""
SENDS = 8
"""Events that one handling may send, timers included: a team's roles send one."""


@dataclass(slots=True)
class Decision:
    """One agent's turn."""

    agent: str
    records: list[DecisionRecord] = field(default_factory=list[DecisionRecord])


@dataclass(slots=True)
class Handling:
    """An event (or a turn over HTTP), dealt with in one commit."""

    event_id: str
    """Empty: these records came without an event."""
    role: str = ""
    decisions: list[Decision] = field(default_factory=list[Decision])
    began: float = 0.0
    """Unix time, s."""
    ended: float = 0.0
    attempt: int = 1
    """Which try it was that succeeded."""
    cause: "Handling | None" = None
    """The handling that sent the event, from whose id its own follows; None: it came from outside."""
    failed: list[StateChanged] = field(default_factory=list[StateChanged])
    """Tries before it that failed."""


@dataclass(slots=True)
class Chain:
    """A session, ready to become a trace."""

    team: str
    opened: EpisodeOpened
    handlings: list[Handling]
    end: EpisodeEnded | None
    last: float
    """When the last thing happened (Unix time, s)."""
    failed: list[StateChanged]
    """Failed tries of what never succeeded."""


def chain_of(team: str, noted: Sequence[Noted]) -> Chain | None:
    """Group a session's history; None where its opening is not on record."""
    opened = next((n.record for n in noted if isinstance(n.record, EpisodeOpened)), None)
    if opened is None:
        return None
    handlings: dict[str, Handling] = {}
    failed: list[StateChanged] = []
    end: EpisodeEnded | None = None
    for each in noted:
        record = each.record
        if isinstance(record, StateChanged) and record.after == "error":
            failed.append(record)
        elif isinstance(record, EpisodeEnded):
            end = record
        if not each.event_id and not isinstance(record, DecisionRecord):
            continue
        handling = handlings.setdefault(each.event_id, Handling(each.event_id, began=record.at, ended=record.at))
        _put(handling, record)
    ordered = list(handlings.values())
    sent: dict[str, Handling] = {}
    for handling in ordered:
        handling.cause = sent.get(handling.event_id)
        sent |= {derived_id(handling.event_id, ROLE, k): handling for k in range(SENDS)}
        handling.failed = [f for f in failed if f.agent == handling.role and f.at <= handling.ended]
        failed = [f for f in failed if f not in handling.failed]
    return Chain(team, opened, ordered, end, max(n.record.at for n in noted), failed)


def _put(handling: Handling, record: AnyRecord) -> None:
    handling.began, handling.ended = min(handling.began, record.at), max(handling.ended, record.at)
    match record:
        case Redelivered():
            handling.attempt = record.attempt
            handling.role = handling.role or record.agent
        case StateChanged():
            handling.role = handling.role or record.agent
        case DecisionRecord():
            handling.role = handling.role or record.agent
            _decision(handling.decisions, record).records.append(record)
        case _:
            pass


def _decision(decisions: list[Decision], record: DecisionRecord) -> Decision:
    mine = (d for d in reversed(decisions) if d.records[0].decision_id == record.decision_id)
    found = next(mine, None)
    if found is None:
        found = Decision(record.agent)
        decisions.append(found)
    return found


def seen_in(decision: Decision) -> Observed | None:
    """What the agent saw."""
    return next((r for r in decision.records if isinstance(r, Observed)), None)
