"""Values of the outcome that are sometimes numbers and sometimes none, and what a term pays where they are none.

What is none because of what the team did is an answer like another: it called otherwise, or it failed. What is none
although the same calls were graded in another case is a gap, and a gap is paid nothing: it is missing.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rewards.audit.correlations import same
from rewards.audit.figures import Run, finite_runs
from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.playing import Episode
from rewards.audit.tampering import paid_for
from rewards.mix import Weighted
from runtime.leaves import leaves
from runtime.records import Json, ToolCall

TRIED = 5
"""Numbers that are put into a gap, to see whether the term reads it."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Graded:
    """A run, and what stands at one path of its outcome."""

    run: Run
    episode: Episode
    value: object
    calls: tuple[str, ...]

    @property
    def is_gap(self) -> bool:
        """Whether it is no finite number, nor a text that spells one."""
        return not _is_number(self.value)


def gaps_paid(weighted: Weighted, found: Sequence[Run], remedy: str) -> Iterator[Finding]:
    """Each path of the outcome at which numbers and gaps are met."""
    if weighted.term.kind == "cost" or "outcome" not in weighted.term.reads:
        return
    usable = [(r, r.played) for r in finite_runs(found, weighted.term.name) if isinstance(r.played, Episode)]
    outcomes = [dict(e.outcome) for _, e in usable]
    for path in dict.fromkeys(p for o in outcomes for p, v in leaves(o) if _is_number(v) and "[" not in p):
        graded = [_Graded(r, e, _at(e.outcome, path), _calls(e)) for r, e in usable]
        finding = _judged(weighted, path, graded, remedy)
        if finding is not None:
            yield finding


def _judged(weighted: Weighted, path: str, graded: Sequence[_Graded], remedy: str) -> Finding | None:
    numbers = [g for g in graded if not g.is_gap]
    known = {g.calls for g in numbers}
    gaps = [g for g in graded if g.is_gap and g.calls in known]
    failed = [g for g in numbers if not g.run.success]
    if not any(g.run.success for g in gaps) and not failed:
        return None  # to fail is what it says
    read = [g for g in gaps if _reads(weighted, g, path, numbers)]
    if not read:
        return None
    earned = min((_paid(weighted, g) for g in numbers if g.run.success), default=math.inf)
    short = [g for g in read if g.run.success and _paid(weighted, g) < earned]
    broken = [g for g in read if g.value is not _ABSENT and g.value is not None]
    example = (short or broken or read)[0]
    return _told(weighted, path, example, len(read), sure=bool(short or broken), remedy=remedy)


def _reads(weighted: Weighted, gap: _Graded, path: str, numbers: Sequence[_Graded]) -> bool:
    """Whether some number in its place would be paid otherwise."""
    last, paid = gap.episode.steps - 1, _paid(weighted, gap)
    for value in list(dict.fromkeys(cast("Json", g.value) for g in numbers))[:TRIED]:
        filled = dataclasses.replace(gap.episode, outcome=_filled(gap.episode.outcome, path, value))
        then = paid_for(weighted, filled, last)
        if then is not None and not same(then, paid):
            return True
    return False


def _paid(weighted: Weighted, graded: _Graded) -> float:
    return graded.run.total(weighted.term.name)


def _calls(episode: Episode) -> tuple[str, ...]:
    """All that was decided, in order."""
    return tuple(
        f"{m.agent}: {m.action if isinstance(m.action, ToolCall) else m.seen.candidates[m.action]}"
        for m in episode.moves
    )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _keys(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _at(values: Mapping[str, Json], path: str) -> object:
    found: object = values
    for key in _keys(path):
        if not isinstance(found, Mapping) or key not in found:
            return _ABSENT
        found = cast("Mapping[str, object]", found)[key]
    return found


def _filled(values: Mapping[str, Json], path: str, value: Json) -> dict[str, Json]:
    key, *rest = _keys(path)
    inner: Json = values.get(key)
    if not rest:
        return {**values, key: value}
    held = cast("Mapping[str, Json]", inner) if isinstance(inner, Mapping) else dict[str, Json]()
    return {**values, key: _filled(held, ".".join(rest), value)}


def _told(weighted: Weighted, path: str, gap: _Graded, many: int, *, sure: bool, remedy: str) -> Finding:
    say = error if sure else warning
    stands = "nothing" if gap.value is _ABSENT else f"{gap.value!r}"
    paid = _paid(weighted, gap)
    return say(
        f"{'turns' if sure else 'may turn'} failure into a number: where outcome{path} is {stands} it pays {paid:g}, "
        "though the same calls are graded in other cases",
        f"{remedy}; or let the world state the number that is meant, where nothing means one",
        Where(term=weighted.term.name, episode=gap.run.case, player=gap.run.player),
        Evidence(
            numbers={"runs with a gap": many, "paid": paid},
            saw=f"success {gap.run.success}, outcome {str(dict(gap.episode.outcome))[:240]}",
            used=f"outcome{path}",
        ),
    )
