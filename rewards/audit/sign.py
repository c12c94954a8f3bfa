"""The sign: success must not be paid less than failure, the best play not the least, and spending not at all."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from rewards.audit.figures import Payer, Run, all_runs, finite_runs, payers, varied_success, with_success
from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.label_shuffle import sureness
from rewards.audit.material import Material

AGAINST = -0.3
"""Rank correlation with success from which an outcome is turned round."""
BY_CHANCE = 1e-4
"""Probability below which a correlation is none of chance's."""
SURE = 4.0
"""Standard errors from which a difference is none of chance's."""
_REMEDY = "turn the sign of the term, or of its weight"


def sign(material: Material) -> Iterator[Finding]:
    """Outcomes against success, hints against the best play, costs against zero."""
    found = all_runs(material)
    if material.has("game"):
        yield from _game(material, found)
        return
    for payer in payers(material):
        usable = [r for r in finite_runs(found, payer.name) if r.pays.get(payer.name)]
        fault = _cost(payer, usable) if payer.kind == "cost" else _earned(material, payer, usable)
        if fault is not None:
            yield fault


def _game(material: Material, found: Sequence[Run]) -> Iterator[Finding]:
    """A game that says who succeeded: every agent's pay must be against it before the sign is."""
    judged = [r for r in found if r.success is not None]
    against = [f for p in payers(material) if (f := _against_success(p, finite_runs(judged, p.name))) is not None]
    if against and len(against) == len(payers(material)):
        yield against[0]


def _earned(material: Material, payer: Payer, usable: Sequence[Run]) -> Finding | None:
    against = _against_success(payer, usable) if payer.kind == "outcome" else None
    return against or _best_least(material, payer, usable)


def _against_success(payer: Payer, usable: Sequence[Run]) -> Finding | None:
    if len(usable) < 20 or not varied_success(usable):
        return None
    rho, p = with_success(payer, usable)
    if rho > AGAINST or p > BY_CHANCE:
        return None
    good = max((r for r in usable if r.success), key=lambda r: -r.total(payer.name))
    bad = max((r for r in usable if not r.success), key=lambda r: r.total(payer.name))
    return error(
        f"the more it pays, the less often the team succeeds (rank correlation {rho:.2f})",
        _REMEDY,
        Where(term=payer.name, episode=good.case, player=good.player),
        Evidence(
            numbers={"rank correlation": rho, "runs": len(usable)},
            saw=f"success: {good.player} on {good.case} is paid {good.total(payer.name):g}",
            used=f"failure: {bad.player} on {bad.case} is paid {bad.total(payer.name):g}",
        ),
    )


def _best_least(material: Material, payer: Payer, usable: Sequence[Run]) -> Finding | None:
    """Whether the player that succeeds most is paid the least of all, over the same cases."""
    best, by_player = material.best, _by_player(usable)
    if best is None or best not in by_player or len(by_player) < 3:
        return None
    success = {p: fmean(float(bool(r.success)) for r in found.values()) for p, found in by_player.items()}
    others = [p for p in by_player if p != best and not p.startswith("swapped")]
    if not others or success[best] <= max(success[p] for p in others) + 0.1:
        return None
    gaps = {p: _gap(payer, by_player[best], by_player[p]) for p in others}
    if any(mean > 0 or (mean == 0 and p == "empty") for p, (mean, _) in gaps.items()):
        return None
    surely = [p for p, (_, sure) in gaps.items() if sure < -SURE]
    if "random" not in surely or 2 * len(surely) < len(others):
        return None
    return error(
        f"pays the best play the least: {best} succeeds most, and is paid less than {len(surely)} other ways to play",
        _REMEDY,
        Where(term=payer.name, player=best),
        Evidence(
            numbers={f"{best} less {p}": mean for p, (mean, _) in list(gaps.items())[:4]} | {"success": success[best]}
        ),
    )


def _by_player(usable: Sequence[Run]) -> dict[str, dict[str, Run]]:
    found: dict[str, dict[str, Run]] = {}
    for run in usable:
        found.setdefault(run.player, {})[run.case] = run
    return found


def _gap(payer: Payer, one: Mapping[str, Run], other: Mapping[str, Run]) -> tuple[float, float]:
    """The mean difference over the cases of both, and its standard errors."""
    return sureness([one[c].total(payer.name) - other[c].total(payer.name) for c in one if c in other])


def _cost(payer: Payer, usable: Sequence[Run]) -> Finding | None:
    """A cost is what the team spends: paid with a minus."""
    values = [p.value for r in usable for p in r.pays[payer.name] if p.value is not None]
    if not values or min(values) < 0 or max(values) <= 0:
        return None
    run = max(usable, key=lambda r: r.total(payer.name))
    return error(
        f"is declared a cost, and pays: {min(values):g} to {max(values):g} a step, never less than nothing",
        "return minus what is spent; a bonus is of kind shaping",
        Where(term=payer.name, episode=run.case, player=run.player),
        Evidence(
            numbers={"lowest": min(values), "highest": max(values)},
            used=f"{run.player} on {run.case} is paid {run.total(payer.name):g} for it",
        ),
    )
