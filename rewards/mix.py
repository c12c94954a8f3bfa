"""From records to pay: the terms of an experiment, weighted, judged step by step on what is past."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from rewards.deadline import called
from rewards.readonly import readonly
from runtime.errors import RewardFault
from runtime.llm.types import Spent
from runtime.records import Decided, Json, Record, Rewarded
from runtime.terms import Judgement
from runtime.types import AgentId, Paid, Played, RewardTerm

NOTHING = Spent()
"""What a term spends that only computes."""


class Past(Sequence[Record]):
    """The records up to a step. Nothing after it can be reached, also when the episode went on."""

    __slots__ = ("_end", "_records")

    def __init__(self, records: Sequence[Record], end: int) -> None:
        self._records, self._end = records, end

    def __len__(self) -> int:
        return self._end

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return [self._records[i] for i in range(*index.indices(self._end))]
        place = index + self._end if index < 0 else index
        if not 0 <= place < self._end:
            raise IndexError(f"record {index} is not in the past of this step, which has {self._end} records")
        return self._records[place]


@dataclass(frozen=True, slots=True)
class PastView:
    """What one term may read at one step (``runtime.types.View``)."""

    term: RewardTerm
    played: Played
    agent: AgentId
    turn: int
    since: int
    end: int

    @property
    def history(self) -> Sequence[Record]:
        """Everything that happened up to and including the step."""
        return Past(self.played.records, self.end)

    @property
    def step(self) -> Sequence[Record]:
        """What happened in this step; for a term paid to single agents, to this agent."""
        records = self.played.records[self.since : self.end]
        if self.term.scope == "agent":
            return [r for r in records if getattr(r, "agent", self.agent) == self.agent]
        return records

    @property
    def visible(self) -> Mapping[str, Json]:
        """What the scenario shows; it cannot be written."""
        return readonly(self.played.scenario.visible)

    @property
    def truth(self) -> Mapping[str, Json]:
        """The hidden truth, for a term that declares it."""
        if "truth" not in self.term.reads:
            raise RewardFault(f"term {self.term.name} reads the truth without declaring it: term(reads=['truth'])")
        return readonly(self.played.scenario.truth)

    @property
    def outcome(self) -> Mapping[str, Json]:
        """How the episode ended, for a term that declares it, once it has."""
        self._due()
        return readonly(self.played.outcome)

    @property
    def success(self) -> bool:
        """Whether the episode ended well; under the same rule."""
        self._due()
        return self.played.success

    def _due(self) -> None:
        if "outcome" not in self.term.reads:
            raise RewardFault(f"term {self.term.name} reads the outcome without declaring it: term(reads=['outcome'])")
        if not self.played.ended or self.end < len(self.played.records):
            raise RewardFault(f"term {self.term.name} reads the outcome before the episode has ended")


@dataclass(frozen=True, slots=True)
class Weighted:
    """A term and how much it counts."""

    term: RewardTerm
    weight: float = 1.0


class Mix:
    """The reward of an experiment: judges steps of sessions (``runtime.types.Judge``).

    Values are in the terms' own unit, times the weight. A term that raises, or returns None, NaN or infinity, is
    missing at that step: its record says why, and the step's sum is NaN, never a number that leaves it out.
    """

    def __init__(self, terms: Sequence[Weighted]) -> None:
        names = [t.term.name for t in terms]
        if len(set(names)) < len(names):
            raise ValueError(f"two reward terms have the same name: {', '.join(names)}")
        self.terms = tuple(terms)

    def __call__(self, played: Played, since: int) -> Paid:
        """What the step whose records begin at ``since`` is worth."""
        end = len(played.records)
        turns = [(r.agent, r.turn) for r in played.records[since:end] if isinstance(r, Decided)]
        shared, own, records = 0.0, dict[AgentId, float](), list[Rewarded]()
        for weighted in self.terms:
            if weighted.term.at_end and not played.ended:
                continue
            for agent, turn in turns[-1:] if weighted.term.scope == "team" else turns:
                view = PastView(weighted.term, played, agent, turn, since, end)
                record = _judged(weighted, view)
                records.append(record)
                value = math.nan if record.value is None else record.value
                if weighted.term.scope == "team":
                    shared += value
                else:
                    own[agent] = own.get(agent, 0.0) + value
        return Paid(shared, own, records)


def _judged(weighted: Weighted, view: PastView) -> Rewarded:
    value, why, spent = _value(weighted, view)
    last = view.played.records[view.end - 1]
    return Rewarded(
        correlation_id=last.correlation_id,
        at=last.at,
        agent=view.agent,
        turn=view.turn,
        term=weighted.term.name,
        value=value,
        missing=why,
        scope=weighted.term.scope,
        tokens=spent.tokens_in + spent.tokens_out,
        cost_usd=spent.cost_usd or 0.0,
        cached=spent.cached,
    )


def _value(weighted: Weighted, view: PastView) -> tuple[float | None, str, Spent]:
    """The value, or why it is missing, and what it took to have it."""
    try:
        found = called(weighted.term, view)
        value = number(found)
    except NoNumber as fault:
        return None, str(fault), NOTHING
    except Exception as error:  # noqa: BLE001 - the user's term: whatever it raises makes the reward missing
        return None, f"{type(error).__name__}: {error}", getattr(error, "spent", NOTHING)
    return weighted.weight * value, "", found.spent if isinstance(found, Judgement) else NOTHING


class NoNumber(Exception):
    """A term returned something that is no finite number."""


def number(found: Any) -> float:
    """What a term returned, as a number. A text is none, even if it spells one.

    Raises:
        NoNumber: it is no number, or not a finite one.
    """
    if isinstance(found, str | bytes):
        raise NoNumber(f"returned {found!r}, which is a text and no number")
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise NoNumber(f"returned {found!r}, which is no number") from None
    if not math.isfinite(value):
        raise NoNumber(f"returned {found}")
    return value
