"""An outcome or a hint that pays the same whatever is done says nothing.

A sparse reward looks alike as long as nobody earns it. It is told apart by tampering: another ending or another truth
moves it, while nothing moves a constant.
"""

from collections.abc import Iterator, Sequence

from rewards.audit.correlations import all_same
from rewards.audit.figures import Payer, Run, finite_runs, many_runs, payers, varied_success
from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.judging import Pay
from rewards.audit.material import Material
from rewards.audit.playing import Episode
from rewards.audit.tampering import moved_by, parts_read

FEWEST = 10
"""Runs from which something can be said."""


def constant(material: Material) -> Iterator[Finding]:
    """Each outcome and shaping term over everybody's play."""
    found = many_runs(material)
    for payer in payers(material, ("outcome", "shaping")):
        usable = [r for r in finite_runs(found, payer.name) if r.pays.get(payer.name)]
        if len(usable) >= FEWEST and fixed(payer, usable):
            yield _of_game(payer, usable) if payer.weighted is None else _of_term(payer, usable)


def fixed(payer: Payer, usable: Sequence[Run]) -> bool:
    """Whether pay follows from whose turn it is and whether it is the last, or from the number of the step."""
    if payer.weighted is None:
        return all_same([r.total(payer.name) for r in usable])
    rows = [(p, p.step == r.steps - 1) for r in usable for p in r.pays[payer.name]]
    by_agent: dict[tuple[str, bool], list[float]] = {}
    by_step: dict[int, list[float]] = {}
    for pay, last in rows:
        by_agent.setdefault((pay.agent, last), []).append(_number(pay))
        by_step.setdefault(pay.step, []).append(_number(pay))
    return any(all(map(all_same, groups.values())) for groups in (by_agent, by_step))


def _number(pay: Pay) -> float:
    return 0.0 if pay.value is None else pay.value


def _of_game(payer: Payer, usable: Sequence[Run]) -> Finding:
    total = usable[0].total(payer.name)
    if total > 0 or varied_success(usable):
        return _says_nothing(payer, usable, "")
    return note(
        f"{payer.name} was {total:g} in every run: if it is sparse, nobody who played has earned it",
        Where(term=payer.name),
    )


def _of_term(payer: Payer, usable: list[Run]) -> Finding:
    assert payer.weighted is not None
    example = usable[0].played
    reads = parts_read(payer.weighted, example) if isinstance(example, Episode) else set[str]()
    moved = moved_by(payer, usable)
    zero = all(_number(p) == 0 for r in usable for p in r.pays[payer.name])
    varied = varied_success(usable)
    accused = not reads or (payer.kind == "outcome" and varied and not moved)
    if not zero:
        accused |= varied or moved not in ("ending", "truth")
    if accused:
        return _says_nothing(payer, usable, moved)
    return note(
        f"paid {_shown(payer, usable)} in every run: if it is sparse, nobody who played has earned it",
        Where(term=payer.name),
    )


def _shown(payer: Payer, usable: Sequence[Run]) -> str:
    values = sorted({_number(p) for r in usable for p in r.pays[payer.name]})
    return " or ".join(f"{v:g}" for v in values[:3])


def _says_nothing(payer: Payer, usable: Sequence[Run], moved: str) -> Finding:
    successes = [r for r in usable if r.success]
    failures = [r for r in usable if r.success is False]
    one, other = (failures or usable)[0], (successes or usable)[-1]
    return error(
        f"pays {_shown(payer, usable)} whatever is done"
        + (f" (only another {moved} would change it, and none that was played did)" if moved else ""),
        "let it depend on what the team did; a price that is always the same is a cost: kind='cost'",
        Where(term=payer.name, episode=one.case, player=one.player),
        Evidence(
            numbers={"runs": len(usable), "successes": len(successes)},
            saw=f"{one.player} on {one.case}: success {one.success}, {one.steps} steps, paid {one.total(payer.name):g}",
            used=f"{other.player} on {other.case}: success {other.success}, {other.steps} steps, "
            f"paid {other.total(payer.name):g}",
        ),
    )
