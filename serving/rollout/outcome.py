"""What a session came to, from its records: what its version is judged by."""

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from runtime.records import (
    DecisionRecord,
    EpisodeEnded,
    EpisodeOpened,
    FaultCode,
    ModelCalled,
    Observed,
    Record,
    Rewarded,
    ToolAnswered,
)

INVALID: frozenset[FaultCode] = frozenset({"malformed", "unknown_tool", "bad_arguments", "illegal", "over_budget"})
"""Faults of the call, and so of the agent; a tool that fails, or answers badly, is no fault of whoever asked it."""
GIVEN_UP = "given_up"
"""The key in the outcome of a session that could not go on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A session that is over."""

    session: str
    version: str
    """Its alias."""
    opened: float
    """Unix time, s."""
    degraded: bool = False
    """A fallback answered in it, in place of the version's own model: it says nothing about the version."""
    error: bool = False
    """It could not go on, or a turn of it failed for good."""
    invalid_calls: float | None = None
    """The share of its tool calls that were invalid; None: it made none."""
    latency_ms: float | None = None
    """What a decision took, tools included, on average (ms); None: it has none that was carried out."""


def outcome_of(records: Sequence[Record], version: str, *, failed: bool = False) -> Outcome | None:
    """What a session came to; None where the records do not begin with an opening.

    Args:
        records: all of the session's records, in order.
        version: the alias of the version that played it.
        failed: a turn failed in a way that left no record, such as a request that was answered with an error.
    """
    opened = next((r for r in records if isinstance(r, EpisodeOpened)), None)
    if opened is None:
        return None
    ended = next((r for r in records if isinstance(r, EpisodeEnded)), None)
    answers = [r for r in records if isinstance(r, ToolAnswered)]
    invalid = [r.fault is not None and r.fault.code in INVALID for r in answers]
    return Outcome(
        session=opened.correlation_id,
        version=version,
        opened=opened.at,
        degraded=any(isinstance(r, ModelCalled) and r.degraded for r in records),
        error=failed or (ended is not None and GIVEN_UP in ended.outcome),
        invalid_calls=sum(invalid) / len(invalid) if invalid else None,
        latency_ms=_latency_ms(records),
    )


def _latency_ms(records: Iterable[Record]) -> float | None:
    """From what an agent saw to the last that its decision brought about, on average over decisions (ms)."""
    begun, ended = dict[str, float](), dict[str, float]()
    for record in records:
        if isinstance(record, Observed):
            begun[record.decision_id] = record.at
        elif isinstance(record, DecisionRecord) and not isinstance(record, Rewarded):
            ended[record.decision_id] = record.at
    took = [1000 * (at - begun[name]) for name, at in ended.items() if name in begun]
    return max(0.0, statistics.fmean(took)) if took else None


def own_reward(records: Iterable[Record], terms: Collection[str]) -> float | None:
    """What the team's own terms paid in a session, as they were judged live: shared pay once, single agents' summed.

    Args:
        records: the session's records.
        terms: the names of those terms that can be judged without the hidden truth (``blind_terms``).

    Returns:
        The sum, in the terms' unit; None where one is missing or none was judged. A missing reward is never 0.
    """
    values = [r.value for r in records if isinstance(r, Rewarded) and r.term in terms]
    if not values or any(v is None for v in values):
        return None
    return sum(v for v in values if v is not None)
