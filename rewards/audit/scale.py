"""Magnitudes: pay that the standardizer clips, terms that drown the outcome, numbers no value function can follow."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewards.audit.figures import all_runs, hints, measured_players, payers, runs
from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.material import Material
from rewards.audit.ranges import paid_to, shared
from rewards.standardize import TINY

CLIPPED = 0.5
"""Share of an agent's rewards that may be clipped."""
LOUD, DEAR = 10.0, 100.0
"""How many times the outcome's spread over runs a hint's may be, and a cost's."""
LARGE, HUGE = 100.0, 1_000.0
"""Usual size of a raw reward, in its own unit, that is warned of, and that is an error, where nothing standardizes."""


def scale(material: Material) -> Iterator[Finding]:
    """What training would make of the pay's size; how large the terms are beside each other."""
    for agent in material.agents:
        found = _clipped(material, agent)
        if found is not None:
            yield found
            break
    yield from _drowning(material)


def _clipped(material: Material, agent: str) -> Finding | None:
    """Whether chance's rewards, standardized as training begins, leave room for those of others."""
    settings: Mapping[str, Any] = material.own.get("standardize", {})
    to_all = shared(material)
    by_player = {
        p: np.asarray([v for r in runs(material, p) for v in paid_to(r, agent, to_all)])
        for p in measured_players(material)
    }
    first = by_player["random"]
    if not first.size:
        return None
    if settings.get("per") == "none":
        return _raw(agent, np.concatenate(list(by_player.values())))
    mean, spread, clip = float(first.mean()), float(first.std()), float(settings.get("clip", 10.0))
    if spread**2 <= TINY * (1.0 + mean**2):
        return _without_spread(agent, first, mean) if spread else None
    centre = mean if settings.get("center", True) else 0.0
    for player, values in by_player.items():
        share = float((np.abs((values - centre) / spread) >= clip).mean()) if values.size else 0.0
        if share > CLIPPED:
            return error(
                f"{share:.0%} of the rewards in play by {player} are clipped at {clip:g} standard deviations of "
                "chance's: they can no longer be told apart",
                "bring large and small rewards closer together, or raise rewards.standardize.clip",
                Where(agent=agent, player=player),
                Evidence(numbers={"share clipped": share, "mean": mean, "std": spread, "clip": clip}),
            )
    return None


def _raw(agent: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> Finding | None:
    paid = np.abs(values[values != 0])
    usual = float(np.median(paid)) if paid.size else 0.0
    if usual < LARGE:
        return None
    say = error if usual >= HUGE else warning
    return say(
        f"rewards are usually around {usual:g} and nothing standardizes them: the value function cannot follow",
        "standardize (rewards.standardize.per: agent), or scale the terms by their weights",
        Where(agent=agent),
        Evidence(numbers={"median": usual, "largest": float(paid.max())}),
    )


def _without_spread(agent: str, values: np.ndarray[Any, np.dtype[np.float64]], mean: float) -> Finding:
    return error(
        f"rewards differ by {float(np.ptp(values)):.2g} around {mean:g}: the standardizer takes that for no difference",
        "take the constant part out of the reward",
        Where(agent=agent),
        Evidence(numbers={"mean": mean, "std": float(values.std())}),
    )


def _drowning(material: Material) -> Iterator[Finding]:
    """Terms whose totals spread many times wider over runs than all outcome terms together."""
    if material.has("game"):
        return
    found = [r for r in all_runs(material) if math.isfinite(r.pay)]
    small = hints(material, found)
    outcomes = [p.name for p in payers(material, ("outcome",)) if p not in small]
    spread = float(np.std([math.fsum(r.total(n) for n in outcomes) for r in found])) if found else 0.0
    for payer in (*small, *payers(material, ("cost",))):
        mine = float(np.std([r.total(payer.name) for r in found])) if found else 0.0
        if spread > 0 and mine > (DEAR if payer.kind == "cost" else LOUD) * spread:
            largest = max(found, key=lambda r: abs(r.total(payer.name)))
            yield error(
                f"drowns the outcome: over varied play its totals spread {mine / spread:.0f} times as wide",
                "scale it down by its weight, or the outcome up",
                Where(term=payer.name, episode=largest.case, player=largest.player),
                Evidence(
                    numbers={"std": mine, "std of outcome": spread},
                    used=f"{largest.player} on {largest.case}: {largest.total(payer.name):g} of {largest.pay:g} in all",
                ),
            )
