"""Hints that decide, and terms that say the same: the outcome must settle which of two episodes is the better one."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random

import numpy as np

from rewards.audit.correlations import SAME, all_same, correlation, same
from rewards.audit.figures import Payer, Run, all_runs, finite_runs, hints, payers
from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.material import Material

DECIDES = 0.85
"""Share of the conflicts between hint and outcome that the hint may win."""
CONFLICTS = 30
"""Pairs of episodes in which hint and outcome disagree, from which a share can be told."""
PAIRS = 30
"""Pairs of one case, at most."""
RARE = 0.02
"""Share of pairs: conflicts that are rarer decide no ranking."""
EQUAL = 0.9999
"""Correlation from which two terms say the same."""


def dominated(material: Material) -> Iterator[Finding]:
    """Pairs of episodes of one case, then pairs of terms."""
    found = all_runs(material)
    for payer in payers(material):
        found = finite_runs(found, payer.name)
    yield from _decided_by_hints(material, found)
    for one, other in combinations(payers(material), 2):
        fault = _duplicates(one, other, found)
        if fault is not None:
            yield fault


# -- one hint decides


def _decided_by_hints(material: Material, found: Sequence[Run]) -> Iterator[Finding]:
    suspects = hints(material, found)
    outcomes = [p.name for p in payers(material, ("outcome",)) if p not in suspects]
    pairs = _pairs(found)
    for payer in suspects:
        conflicts = [(a, b) for a, b in pairs if _disagree(payer, outcomes, a, b)]
        if len(conflicts) < max(CONFLICTS, RARE * len(pairs)):
            continue
        won = [(a, b) for a, b in conflicts if (a.pay - b.pay) * (a.total(payer.name) - b.total(payer.name)) > 0]
        if len(won) >= DECIDES * len(conflicts):
            yield _decides(payer, outcomes, won[0], len(won) / len(conflicts))


def _pairs(found: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs of the same case by different players, some of each case."""
    cases: dict[str, list[Run]] = {}
    for run in found:
        cases.setdefault(run.case, []).append(run)
    chance, pairs = Random(0), list[tuple[Run, Run]]()
    for runs in cases.values():
        both = list(combinations(runs, 2))
        pairs += chance.sample(both, min(len(both), PAIRS))
    return pairs


def _better(outcomes: Sequence[str], one: Run, other: Run) -> float:
    """By how much one run is the better one: by the outcome terms, or by success where there is none."""
    if outcomes:
        return math.fsum(one.total(n) for n in outcomes) - math.fsum(other.total(n) for n in outcomes)
    return float(bool(one.success)) - float(bool(other.success))


def _disagree(payer: Payer, outcomes: Sequence[str], one: Run, other: Run) -> bool:
    better, hint = _better(outcomes, one, other), one.total(payer.name) - other.total(payer.name)
    return abs(better) > SAME and abs(hint) > SAME and better * hint < 0


def _decides(payer: Payer, outcomes: Sequence[str], pair: tuple[Run, Run], share: float) -> Finding:
    good, bad = sorted(pair, key=lambda r: -_better(outcomes, r, pair[0]))
    return error(
        f"decides alone: of episodes that the outcome ranks the other way, it wins {share:.0%}",
        "scale the hint down, by its weight or in the term, until the outcome settles which episode is better",
        Where(term=payer.name, episode=good.case, player=bad.player),
        Evidence(
            numbers={"share won": share},
            saw=f"better by the outcome: {good.player}, outcome {_sum(outcomes, good):g}, "
            f"hint {good.total(payer.name):g}, in all {good.pay:g}",
            used=f"paid more: {bad.player}, outcome {_sum(outcomes, bad):g}, "
            f"hint {bad.total(payer.name):g}, in all {bad.pay:g}",
        ),
    )


def _sum(outcomes: Sequence[str], run: Run) -> float:
    return math.fsum(run.total(n) for n in outcomes)


# -- two terms say the same


def _duplicates(one: Payer, other: Payer, found: Sequence[Run]) -> Finding | None:
    if one.weighted is None or other.weighted is None:
        return None  # a game's agents may well be paid alike
    x, y = ([r.total(p.name) for r in found] for p in (one, other))
    if len(x) < 20 or all_same(x) or abs(correlation(x, y)) < EQUAL:
        return None
    turned, cost = correlation(x, y) < 0, "cost" in (one.kind, other.kind)
    if cost and (turned or not _equal_steps(one, other, found)):
        return None  # what success brings, failure may cost; and one thing may have two prices
    return _same_terms(one, other, found, sure=not turned and (not cost or _amounts(one, found) > 1))


def _equal_steps(one: Payer, other: Payer, found: Sequence[Run]) -> bool:
    """Whether both pay the same at every step, before weights."""
    x, y = (_steps(p, found) for p in (one, other))
    return len(x) == len(y) and bool(np.allclose(x, y))


def _amounts(payer: Payer, found: Sequence[Run]) -> int:
    """In how many different amounts it pays: two prices may be the same by chance, two price lists hardly."""
    return len({round(v, 9) for v in _steps(payer, found) if v})


def _steps(payer: Payer, found: Sequence[Run]) -> list[float]:
    assert payer.weighted is not None
    return [(p.value or 0.0) / payer.weighted.weight for r in found for p in r.pays[payer.name]]


def _same_terms(one: Payer, other: Payer, found: Sequence[Run], sure: bool) -> Finding:
    run = max(found, key=lambda r: abs(r.total(one.name)))
    turned = run.total(one.name) * run.total(other.name) < 0
    cancel = turned and same(run.total(one.name), -run.total(other.name))
    say = error if sure or cancel else warning
    what = "take from each other" if turned else "pay twice for the same"
    return say(
        f"{one.name} and {other.name} {what}: over varied play one follows from the other",
        "drop one of the two",
        Where(term=other.name, episode=run.case, player=run.player),
        Evidence(
            numbers={"runs": len(found)},
            saw=f"{one.name}: {run.total(one.name):g}",
            used=f"{other.name}: {run.total(other.name):g}",
        ),
    )
