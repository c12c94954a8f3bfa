"""No reward is not reward zero: a term that fails must be missing, and an empty answer is no right one.

Four looks: is anything missing in ordinary play; does a term still pay when what it reads is made to fail under its
hands; does it pay where the outcome has a gap; is an answer that says nothing paid like a right one, while a wrong one
is not.
"""

import math
from collections.abc import Iterable, Iterator

from rewards.audit.blank import blank_paid
from rewards.audit.figures import Payer, Run, all_runs, measured_players, payers
from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.gaps import gaps_paid
from rewards.audit.judging import Pay, in_hindsight
from rewards.audit.material import Material
from rewards.audit.playing import Episode
from rewards.audit.swallowing import swallowed

LIMIT = 0.01
"""Share of a player's episodes that may have missing pay, as in training."""
_REMEDY = "let what fails raise (runtime.errors.RewardFault says why): what is missing is counted, never learnt from"


def failure_as_zero(material: Material) -> Iterator[Finding]:
    """Every payer: missing, swallowed, blank."""
    found = all_runs(material)
    for payer in payers(material):
        missing = _missing(material, payer, found)
        if missing is not None:
            yield missing
        if payer.weighted is not None:
            yield from _of_term(material, payer, found)


def _of_term(material: Material, payer: Payer, found: list[Run]) -> Iterator[Finding]:
    assert payer.weighted is not None
    looks = (
        swallowed(material, payer.weighted, _REMEDY),
        gaps_paid(payer.weighted, found, _REMEDY),
        blank_paid(payer.weighted, found),
    )
    for say in looks:
        yield from _first(say)


def _first(found: Iterable[Finding]) -> Iterator[Finding]:
    for finding in found:
        yield finding
        return


def _missing(material: Material, payer: Payer, found: list[Run]) -> Finding | None:
    """Missing pay in ordinary play: an error where training would stop for it."""
    worst: tuple[float, Run, Pay] | None = None
    for player in dict.fromkeys(r.player for r in found):
        own = [r for r in found if r.player == player]
        gaps = [(r, p) for r in own for p in r.pays.get(payer.name, ()) if p.value is None]
        share = len({id(r) for r, _ in gaps}) / len(own)
        if player not in measured_players(material) or share * len(own) <= _by_chance(len(own)):
            share = min(share, LIMIT)
        if gaps and (worst is None or share > worst[0]):
            worst = (share, *gaps[0])
    return _told_missing(payer, *worst) if worst else None


def _by_chance(episodes: int) -> float:
    """Episodes that may be missing where one in a hundred is."""
    return LIMIT * episodes + 3 * math.sqrt(LIMIT * episodes) + 1


def _told_missing(payer: Payer, share: float, run: Run, pay: Pay) -> Finding:
    line = ""
    if payer.weighted is not None and isinstance(run.played, Episode):
        line = next((p.line for p in in_hindsight(payer.weighted, run.played, pay.step) if p.line), "")
    message = f"is missing in play by {run.player}: {pay.missing}" + (f" ({line})" if line else "")
    where = Where(term=payer.name, agent=pay.agent, step=pay.step, episode=run.case, player=run.player)
    if share <= LIMIT:
        return note(f"now and then it {message}", where, Evidence(used=line or pay.missing))
    return error(
        f"{message}; so are {share:.0%} of the episodes",
        "repair what raises, or let the term judge only what it can: steps without a reward are not learnt from",
        where,
        Evidence(numbers={"share of episodes": share}, used=line or pay.missing),
    )
