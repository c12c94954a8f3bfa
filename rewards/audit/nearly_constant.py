"""A bonus on a condition that nearly always holds: it pays most cases the same, whatever is done."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewards.audit.constant import fixed
from rewards.audit.correlations import all_same, same
from rewards.audit.figures import Payer, Run, finite_runs, many_runs, payers
from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.material import Material

MOST = 0.95
"""Share of cases, runs or steps that are paid the same."""
FEWEST = 20
"""Cases, or runs, from which a share can be told."""
FEWEST_PAID = 5
"""Cases that pay, from which can be said that they pay everybody."""
TOLD_APART = 0.5
"""Difference in the success rate of runs that get the usual pay and of the others, from which pay goes with success."""


@dataclass(frozen=True, slots=True)
class _Usual:
    """The pay that most runs get."""

    value: float
    share: float
    of: str
    """What it is a share of."""


def nearly_constant(material: Material) -> Iterator[Finding]:
    """Each outcome and shaping term over everybody's play: by case, by run, by step."""
    found = many_runs(material)
    for payer in payers(material, ("outcome", "shaping")):
        usable = [r for r in finite_runs(found, payer.name) if r.pays.get(payer.name)]
        if len(usable) < FEWEST or fixed(payer, usable):
            continue
        by_case = _pays_the_case(payer, usable)
        if by_case is not None:
            yield by_case
            continue
        usual = _by_case(payer, usable) or _by_run(payer, usable) or _by_step(payer, usable)
        if usual is not None:
            yield _told(payer, usual, usable)


def _most(cases: int) -> float:
    """The share that a condition which holds in 95% of cases reaches in nearly any sample of so many."""
    return MOST - 2.5 * math.sqrt(MOST * (1.0 - MOST) / cases)


def _cases(usable: Sequence[Run]) -> tuple[dict[str, list[Run]], dict[str, list[Run]]]:
    """Runs by case: all of them, and those of cases that at least three have played."""
    cases: dict[str, list[Run]] = {}
    for run in usable:
        cases.setdefault(run.case, []).append(run)
    return cases, {c: found for c, found in cases.items() if len({r.player for r in found}) > 2}


def _pays_the_case(payer: Payer, usable: Sequence[Run]) -> Finding | None:
    """Nothing in some cases and something in others, to everybody in each: where anything is paid, all get it.

    A sparse reward, too, pays nothing in most cases, but hardly everybody in the others.
    """
    _, met = _cases(usable)
    paid = {c: found for c, found in met.items() if any(not same(r.total(payer.name), 0.0) for r in found)}
    if not FEWEST_PAID <= len(paid) < len(met):
        return None
    if not all(all_same([r.total(payer.name) for r in found]) for found in paid.values()):
        return None
    if not any(len({r.success for r in found}) > 1 for found in met.values()):
        return None  # everybody ends alike in every case: then an honest outcome follows from the case, too
    return _told_of_cases(payer, [found[0] for found in paid.values()], next(met[c][0] for c in met if c not in paid))


def _told_of_cases(payer: Payer, paid: Sequence[Run], unpaid: Run) -> Finding:
    one = paid[0]
    return error(
        f"pays the case and not the work: everybody gets the same, {one.total(payer.name):g} in cases such as "
        f"{one.case} and 0 in cases such as {unpaid.case}",
        "compare what the team did with the truth, and pay for that: what a case is, nobody can help",
        Where(term=payer.name, episode=one.case, player=one.player),
        Evidence(
            numbers={"cases that pay": len(paid), "paid": one.total(payer.name)},
            saw=f"{one.case}: {one.total(payer.name):g} to every player",
            used=f"{unpaid.case}: 0 to every player",
        ),
    )


def _by_case(payer: Payer, usable: Sequence[Run]) -> _Usual | None:
    """Cases in which everybody gets the same."""
    cases, met = _cases(usable)
    steady = [found for found in met.values() if all_same([r.total(payer.name) for r in found])]
    if len(met) < FEWEST or len(steady) < _most(len(met)) * len(met):
        return None
    paid = [found[0].total(payer.name) for found in steady]
    value, times = Counter(paid).most_common(1)[0]
    if value == 0.0 and times > len(paid) / 2:
        return None
    others = [r for c, found in met.items() if found not in steady for r in cases[c]]
    rest = [r for r in others if r.total(payer.name) != value]
    if _goes_with_success(payer, [r for found in steady for r in found], rest):
        return None
    return _Usual(value, len(steady) / len(met), "cases, to everybody")


def _by_run(payer: Payer, usable: Sequence[Run]) -> _Usual | None:
    value, times = Counter(round(r.total(payer.name), 9) for r in usable).most_common(1)[0]
    usual = [r for r in usable if round(r.total(payer.name), 9) == value]
    rest = [r for r in usable if round(r.total(payer.name), 9) != value]
    better = sum(r.total(payer.name) > value for r in rest) > len(rest) / 2
    if (
        times < _most(len({r.case for r in usable})) * len(usable)
        or value == 0
        or (value < 0 and better)
        or _goes_with_success(payer, usual, rest)
    ):
        return None
    return _Usual(value, times / len(usable), "runs")


def _by_step(payer: Payer, usable: Sequence[Run]) -> _Usual | None:
    """Hints on the way that are given at nearly every step. A game may pay for every step that one stays in."""
    values = [round(p.value, 9) for r in usable for p in r.pays[payer.name] if p.value is not None]
    value, times = Counter(values).most_common(1)[0]
    if payer.weighted is None or payer.weighted.term.at_end or value <= 0 or times < _most(len(usable)) * len(values):
        return None
    return _Usual(value, times / len(values), "steps")


def _goes_with_success(payer: Payer, usual: Sequence[Run], rest: Sequence[Run]) -> bool:
    """Whether the few that are paid otherwise are those that succeed, and paid more, or the other way round."""
    judged = [[r for r in side if r.success is not None] for side in (usual, rest)]
    if not all(judged):
        return False
    (often, paid), (seldom, other) = (
        (sum(bool(r.success) for r in side) / len(side), sum(r.total(payer.name) for r in side) / len(side))
        for side in judged
    )
    return abs(often - seldom) >= TOLD_APART and (often > seldom) == (paid > other)


def _told(payer: Payer, usual: _Usual, usable: Sequence[Run]) -> Finding:
    same = [r for r in usable if r.total(payer.name) == usual.value] or list(usable)
    one = same[0]
    other = next((r for r in same if r.player != one.player and r.success != one.success), same[-1])
    return error(
        f"pays {usual.value:g} in {usual.share:.0%} of {usual.of}, whatever is done",
        "pay for something that good play brings about and bad play does not, or drop the term",
        Where(term=payer.name, episode=one.case, player=one.player),
        Evidence(
            numbers={"usual pay": usual.value, "share": usual.share, "runs": len(usable)},
            saw=f"{one.player} on {one.case}: success {one.success}, {one.steps} steps, paid {one.total(payer.name):g}",
            used=f"{other.player} on {other.case}: success {other.success}, {other.steps} steps, "
            f"paid {other.total(payer.name):g}",
        ),
    )
