"""Episodes altered after the fact: other outcomes, other words, failed answers. What an honest term says of them?"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, cast

from rewards.audit.correlations import same
from rewards.audit.figures import Payer, Run
from rewards.audit.judging import views, with_truth
from rewards.audit.playing import Episode
from rewards.deadline import called
from rewards.mix import PastView, Weighted, number
from runtime.leaves import leaves, replaced
from runtime.records import Decided, Fault, Json, Record, Sent, ToolAnswered, ToolCall, ToolCalled

GARBAGE = "zq7f3akw91xv"
"""A word that is no answer to anything."""
Leaf = Callable[[Json], Json]


def blank(leaf: Json) -> Json:
    """Nothing, of the same type; numbers and truth values stay."""
    return "" if isinstance(leaf, str) else leaf


def garble(leaf: Json) -> Json:
    """A word that is no answer; numbers and truth values stay."""
    return GARBAGE if isinstance(leaf, str) and leaf else leaf


def altered(value: Json, leaf: Leaf) -> Json:
    """The value with every leaf changed; ``blank`` empties lists of texts too."""
    if isinstance(value, dict):
        return {k: altered(v, leaf) for k, v in cast("dict[str, Json]", value).items()}
    if isinstance(value, list | tuple):
        items: list[Json] = list(value)
        return [] if leaf is blank else [altered(v, leaf) for v in items]
    return leaf(value)


def reworded(episode: Episode, step: int, leaf: Leaf) -> Episode:
    """Every word that was said, answered or decided in a step, and the outcome if it is the last, changed."""
    records = list(episode.records)
    for place in range(episode.cuts[step], episode.ends[step]):
        records[place] = _reworded(records[place], leaf)
    if step < episode.steps - 1:
        return dataclasses.replace(episode, records=records)
    outcome = cast("Mapping[str, Json]", altered(dict(episode.outcome), leaf))
    return dataclasses.replace(episode, records=records, outcome=outcome, success=False)


def _reworded(record: Record, leaf: Leaf) -> Record:
    if isinstance(record, ToolAnswered):
        return record.model_copy(update={"value": altered(record.value, leaf)})
    if isinstance(record, Sent):
        return record.model_copy(update={"payload": altered(record.payload, leaf)})
    if isinstance(record, ToolCalled):
        return record.model_copy(update={"args": altered(dict(record.args), leaf)})
    if isinstance(record, Decided):
        call = ToolCall.model_construct(tool=record.call.tool, args=altered(dict(record.call.args), leaf))
        return record.model_copy(update={"call": call})
    return record


def failed(episode: Episode, step: int) -> Episode:
    """The episode with the answers of a step failed; those that had failed are answered well."""
    records = list(episode.records)
    for place in range(episode.cuts[step], episode.ends[step]):
        record = records[place]
        if isinstance(record, ToolAnswered):
            fault = Fault(code="tool_failed", message="failed") if record.ok else None
            records[place] = record.model_copy(update={"ok": not record.ok, "value": None, "fault": fault})
    return dataclasses.replace(episode, records=records)


def other_endings(episode: Episode) -> Iterator[Episode]:
    """The episode with its success turned, and with one leaf of its outcome after the other exchanged."""
    yield dataclasses.replace(episode, success=not episode.success)
    truths = [v for _, v in leaves(episode.scenario.truth)]
    for path, old in leaves(dict(episode.outcome)):
        for new in (*truths, *_others(old)):
            if new != old:
                outcome = cast("Mapping[str, Json]", replaced(dict(episode.outcome), path, new))
                yield dataclasses.replace(episode, outcome=outcome)
                yield dataclasses.replace(episode, outcome=outcome, success=not episode.success)


def _others(old: Json) -> tuple[Json, ...]:
    if isinstance(old, bool):
        return (not old,)
    if isinstance(old, int | float):
        return (0, 1, old + 1, old - 1, -old)
    return (None, "", GARBAGE)


# -- what a term reads, and whether anything moves it

PARTS = ("history", "step", "visible", "truth", "outcome", "success", "agent", "turn")


class Watching:
    """A view that notes which of its parts are read, and fails at one if it is told to."""

    def __init__(self, view: PastView, at: str = "", fault: BaseException | None = None) -> None:
        self._view, self._at, self._fault = view, at, fault
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        """A part of the view, or whatever else somebody asks a view for."""
        self.read.add(name)
        if name == self._at and self._fault is not None:
            raise self._fault
        return getattr(self._view, name)


def parts_read(weighted: Weighted, episode: Episode) -> set[str]:
    """All that a term asked of its views over an episode."""
    found: set[str] = set()
    for step in range(episode.steps):
        for view in views(weighted, episode, step):
            watching = Watching(view)
            value_of(weighted, watching)
            found |= watching.read
    return found


def value_of(weighted: Weighted, view: Any) -> float | None:
    """What the term says; None where it is missing."""
    try:
        value = number(called(weighted.term, view))
    except Exception:  # noqa: BLE001 - the user's term: whatever it raises makes the reward missing
        return None
    return weighted.weight * value


def paid_for(weighted: Weighted, episode: Episode, step: int) -> float | None:
    """What a step is worth to all; None where some of it is missing, 0 where the term is not due."""
    values = [value_of(weighted, v) for v in views(weighted, episode, step)]
    return None if None in values else math.fsum(v for v in values if v is not None)


def moved_by(payer: Payer, found: list[Run]) -> str:
    """What changes the pay of some step in some run: ``ending``, ``truth``, ``words``, ``failure``; or nothing."""
    assert payer.weighted is not None
    weighted, chance = payer.weighted, Random(0)
    sample = [r.played for r in chance.sample(found, min(len(found), 8)) if isinstance(r.played, Episode)]
    truths = [e.scenario.truth for e in sample]
    for what, variants in _VARIATIONS.items():
        for episode in sample:
            for step in {0, episode.steps // 2, episode.steps - 1}:
                before = paid_for(weighted, episode, step)
                for variant in variants(episode, step, truths):
                    after = paid_for(weighted, variant, step)
                    if before is not None and after is not None and not same(before, after):
                        return what
    return ""


def _endings(episode: Episode, step: int, _truths: list[Mapping[str, Json]]) -> Iterator[Episode]:
    if step == episode.steps - 1:
        yield from other_endings(episode)


def _with_truths(episode: Episode, _step: int, truths: list[Mapping[str, Json]]) -> Iterator[Episode]:
    yield from (with_truth(episode, t) for t in truths)


def _words(episode: Episode, step: int, _truths: list[Mapping[str, Json]]) -> Iterator[Episode]:
    yield from (reworded(episode, step, leaf) for leaf in (blank, garble))


def _failures(episode: Episode, step: int, _truths: list[Mapping[str, Json]]) -> Iterator[Episode]:
    yield failed(episode, step)


_VARIATIONS: dict[str, Callable[[Episode, int, list[Mapping[str, Json]]], Iterator[Episode]]] = {
    "ending": _endings,
    "truth": _with_truths,
    "words": _words,
    "failure": _failures,
}
