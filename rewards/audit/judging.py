"""Rewards of a played episode: as training pays them, and in hindsight, on records that were tampered with."""

import dataclasses
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewards.audit.playing import Episode
from rewards.deadline import called
from rewards.mix import Mix, NoNumber, PastView, Weighted, number
from runtime.records import Decided, Json, Record
from runtime.types import Scenario

_OURS = Path(__file__).parent.parent
"""A frame in this folder, and not in the term's own file, is no term's line."""


@dataclass(slots=True)
class Grown:
    """An episode as it stood after some step (``runtime.types.Played``)."""

    records: list[Record]
    scenario: Scenario
    ended: bool = False
    outcome: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    success: bool = False


@dataclass(frozen=True, slots=True)
class Pay:
    """What one term paid for one step."""

    term: str
    agent: str
    """Whose turn brought it."""
    step: int
    value: float | None
    """Times the weight, in the term's unit; None is missing."""
    missing: str = ""
    line: str = ""
    """``file:line`` where the term raised, if it did."""


def in_training(mix: Mix, episode: Episode) -> list[Pay]:
    """Every term's value at every step, judged as training does: nothing later exists yet, earlier pay is on record."""
    grown, found = Grown(list(episode.records[: episode.cuts[0]]), episode.scenario), list[Pay]()
    for step in range(episode.steps):
        since = len(grown.records)
        grown.records += episode.records[episode.cuts[step] : episode.ends[step]]
        if step == episode.steps - 1:
            grown.ended, grown.outcome, grown.success = episode.ended, episode.outcome, episode.success
        paid = mix(grown, since).records
        found += [Pay(r.term, r.agent, step, r.value, r.missing) for r in paid]
        grown.records += paid
    return found


def views(weighted: Weighted, episode: Episode, step: int) -> list[PastView]:
    """What the term gets to see of a step, one view for each value that it pays; none where it is not due."""
    term, since, end = weighted.term, episode.cuts[step], episode.ends[step]
    last = step == episode.steps - 1
    if term.at_end and not (last and episode.ended):
        return []
    turns = [(r.agent, r.turn) for r in episode.records[since:end] if isinstance(r, Decided)]
    due = turns[-1:] if term.scope == "team" else turns
    return [PastView(term, episode, agent, turn, since, end) for agent, turn in due]


def in_hindsight(weighted: Weighted, episode: Episode, step: int) -> list[Pay]:
    """What the term says of a step when the whole episode is on record: in a view that ends at the step."""
    return [_pay(weighted, view, step) for view in views(weighted, episode, step)]


def _pay(weighted: Weighted, view: PastView, step: int) -> Pay:
    try:
        value = weighted.weight * number(called(weighted.term, view))
    except NoNumber as fault:
        return Pay(weighted.term.name, view.agent, step, None, str(fault))
    except Exception as fault:  # noqa: BLE001 - the user's term: whatever it raises makes the reward missing
        return Pay(weighted.term.name, view.agent, step, None, f"{type(fault).__name__}: {fault}", line_of(fault))
    return Pay(weighted.term.name, view.agent, step, value)


def line_of(fault: BaseException) -> str:
    """The last line of the term's own code that an exception came through."""
    frames = [
        f for f in traceback.extract_tb(fault.__traceback__) if Path(f.filename).parent not in (_OURS, _OURS / "audit")
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def cut(episode: Episode, step: int) -> Episode:
    """The episode as it stood when that step was paid."""
    if step == episode.steps - 1:
        return dataclasses.replace(episode, records=list(episode.records[: episode.ends[step]]))
    return dataclasses.replace(
        episode,
        records=list(episode.records[: episode.ends[step]]),
        cuts=(*episode.cuts[: step + 1], episode.ends[step]),
        ends=episode.ends[: step + 1],
        moves=tuple(m for m in episode.moves if m.step <= step),
        ended=False,
        truncated=False,
        outcome={},
        success=False,
    )


def spliced(episode: Episode, step: int, other: Episode) -> Episode:
    """The episode up to that step, with everything after it, the ending included, taken from another one."""
    end, resume = episode.ends[step], min(step + 1, other.steps - 1)
    mark = {"correlation_id": episode.records[0].correlation_id}
    tail = [r.model_copy(update=mark) for r in other.records[other.cuts[resume] :]]
    shift = end - other.cuts[resume]
    return dataclasses.replace(
        episode,
        records=[*episode.records[:end], *tail],
        cuts=(*episode.cuts[: step + 1], *(c + shift for c in other.cuts[resume:])),
        ends=(*episode.ends[: step + 1], *(e + shift for e in other.ends[resume:])),
        moves=tuple(m for m in episode.moves if m.step <= step),
        truncated=other.truncated,
        outcome=other.outcome,
        success=other.success,
    )


def with_truth(episode: Episode, truth: Mapping[str, Json]) -> Episode:
    """The same happenings, with another hidden truth behind them."""
    return dataclasses.replace(episode, scenario=dataclasses.replace(episode.scenario, truth=truth))


def returns(pays: Sequence[Pay], of: Callable[[Pay], bool] = lambda pay: True) -> float:
    """The sum of the pay; NaN when some of it is missing."""
    return math.fsum(math.nan if p.value is None else p.value for p in pays if of(p))
