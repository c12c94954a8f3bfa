"""Would a good team be paid, and only a good one? Gold, chance and empty heads play the same cases.

Nobody may earn more than gold by succeeding less, and who does nothing, or always the same, must not come near it.
Where no gold is named, who does nothing may not earn more than the best baseline by succeeding less: how near is too
near, a baseline that may be a poor one cannot say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from rewards.audit.figures import Run, all_players, payers, runs
from rewards.audit.findings import Evidence, Finding, Where, error, note, warning
from rewards.audit.label_shuffle import sureness
from rewards.audit.material import Material
from rewards.audit.players import ALWAYS

NEAR = 0.9
"""Share of the way from the worst player's pay to the best's from which a player comes near it."""
SURE = 4.0
"""Standard errors from which a difference is none of chance's."""
SURE_OF_SUCCESS = 3.0
"""The same for success, which is looked at only where pay has made one look."""
LESS = 0.1
"""Difference in the success rate below which two players count as equally good."""
EMPTY = ("empty", "first_legal", "last_legal")
"""Players that never look at anything; those that always call one tool belong to them too."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """How a player did, beside the best, on the same cases."""

    player: str
    pay: float
    success: float
    ahead: float
    """Mean pay less the best's."""
    sure: float
    """Standard errors of ``ahead``."""
    worse: bool
    """Succeeds less, and surely so."""
    example: tuple[Run, Run]
    """A run of its own, and the best's on the same case."""


def reference_policies(material: Material) -> Iterator[Finding]:
    """Everybody's mean pay and success beside gold's, or beside those of the best baseline."""
    if not payers(material, ("outcome", "shaping")):
        yield note("only costs are paid: to do nothing is the best, as far as the reward goes")
        return
    best = material.best
    if best is None:
        yield note("the team names neither gold nor a baseline that can be played: nobody shows what good play earns")
        return
    table = {p: [r for r in runs(material, p) if r.pay == r.pay] for p in all_players(material)}
    if not table[best]:
        return
    standings = [_standing(p, found, table[best]) for p, found in table.items() if p != best and found]
    top = fmean(r.pay for r in table[best])
    low = min((s.pay for s in standings), default=top)
    for say in (_more_than_best, _near_best):
        accused = [f for s in standings if (f := say(material, s, top, low)) is not None]
        if accused:
            yield min(accused, key=lambda f: f.severity)
            return


def _standing(player: str, found: Sequence[Run], best: Sequence[Run]) -> _Standing:
    by_case = {r.case: r for r in best}
    pairs = [(r, by_case[r.case]) for r in found if r.case in by_case]
    if not pairs:
        pairs = list(zip(found, best, strict=False))
    ahead, sure = sureness([r.pay - b.pay for r, b in pairs])
    less, surely = sureness([float(bool(r.success)) - float(bool(b.success)) for r, b in pairs])
    return _Standing(
        player,
        fmean(r.pay for r in found),
        fmean(float(bool(r.success)) for r in found),
        ahead,
        sure,
        less < -LESS and surely < -SURE_OF_SUCCESS,
        max(pairs, key=lambda p: p[0].pay - p[1].pay - float(bool(p[0].success))),
    )


def _more_than_best(material: Material, one: _Standing, top: float, low: float) -> Finding | None:
    if one.ahead <= 0 or one.sure <= SURE or not (material.gold or _is_empty(one.player)):
        return None
    if one.worse:
        return _told(material, one, top, low, "earns more and succeeds less")
    if material.gold and not _is_baseline(material, one.player) and _is_empty(one.player):
        return _told(material, one, top, low, "earns more")
    return None


def _near_best(material: Material, one: _Standing, top: float, low: float) -> Finding | None:
    if not material.gold or not _is_empty(one.player) or top <= low or (one.pay - low) < NEAR * (top - low):
        return None
    if one.worse:
        return _told(material, one, top, low, "earns nearly as much and succeeds less")
    return None


def _is_empty(player: str) -> bool:
    return player in EMPTY or player.startswith(ALWAYS)


def _is_baseline(material: Material, player: str) -> bool:
    return player in material.the_team.baselines


def _told(material: Material, one: _Standing, top: float, low: float, what: str) -> Finding:
    mine, theirs = one.example
    say = error if one.worse or material.gold else warning
    return say(
        f"{one.player} play {what} than {theirs.player}: {one.pay:g} to {top:g} on average",
        "pay for what only good play brings about: look at which term pays here",
        Where(term=_paying(mine, theirs), episode=mine.case, player=one.player),
        Evidence(
            numbers={"pay": one.pay, f"pay of {theirs.player}": top, "lowest pay": low, "success": one.success},
            saw=_shown(theirs),
            used=_shown(mine),
        ),
    )


def _paying(mine: Run, theirs: Run) -> str:
    return max(mine.totals, key=lambda n: mine.total(n) - theirs.total(n), default="")


def _shown(run: Run) -> str:
    terms = ", ".join(f"{n} {v:g}" for n, v in run.totals.items())
    return f"{run.player} on {run.case}: success {run.success}, {run.steps} steps, paid {run.pay:g} ({terms})"
