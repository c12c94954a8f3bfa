"""Pay beyond its range: the range is measured in chance, expert and ask-everything play, then everybody plays on.

Other players do things that those three don't, so their pay may lie outside by something; one that lies ten times the
range away was never meant to be paid. The same three on fresh cases must stay inside.
"""

from collections.abc import Iterator, Sequence

from rewards.audit.figures import Payer, Run, all_players, all_runs, hints, measured_players, payers, runs
from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.judging import Pay
from rewards.audit.material import Material
from rewards.audit.ranges import FEWEST, Range, expected_ranges

SHARE = 0.05
"""Share of steps beyond the range from which it is an error."""
FAR = 0.2
"""How far beyond, in widths of the range, a step counts for the same three players on fresh cases."""
ABSURD = 10.0
"""The same for players that do what those three don't."""
WIDER = 4.0
"""How many times wider than the range of the outcome the range of a hint may be."""
_REMEDY = "bound the term, or find the condition under which it pays so much; see where it happened"


def out_of_range(material: Material) -> Iterator[Finding]:
    """Each payer: fresh cases, other players, and hints that reach further than the outcome."""
    ranges = expected_ranges(material)
    for payer in payers(material):
        expected = ranges.get(payer.name)
        if expected is not None:
            found = _beyond(material, payer, expected)
            if found is not None:
                yield found
    yield from _too_wide(material, ranges)


def _beyond(material: Material, payer: Payer, expected: Range) -> Finding | None:
    half = max(1, material.effort.episodes // 2)
    measured = measured_players(material)
    warned: Finding | None = None
    for player in all_players(material):
        if player in measured:
            played = runs(material, player, half, start=max(FEWEST, material.effort.episodes))
            found = _judged(payer, expected, played, FAR)
        elif expected.low == expected.high == 0.0:
            continue  # nobody has earned it yet, so nobody knows how much it is
        else:
            far = ABSURD if payer.kind != "cost" else 10 * ABSURD
            found = _judged(payer, expected, runs(material, player), far)
        if found is not None and found.severity == "error":
            return found
        warned = warned or (found if player in measured else None)
    return warned


def _judged(payer: Payer, expected: Range, played: Sequence[Run], far: float) -> Finding | None:
    """An error if too many values lie far beyond, a warning if any does; of a term that is paid once, by episode."""
    values = [(r, p) for r in played for p in r.pays.get(payer.name, ()) if p.value is not None]
    beyond = [(r, p) for r, p in values if expected.far(p.value or 0.0, far)]
    if not beyond:
        return None
    worst = max(beyond, key=lambda rp: expected.beyond(rp[1].value or 0.0))
    return _told(payer, expected, worst, len(beyond) / len(values))


def _told(payer: Payer, expected: Range, worst: tuple[Run, Pay], share: float) -> Finding:
    run, pay = worst
    value = pay.value or 0.0
    say = error if share > SHARE else warning
    return say(
        f"pays {value:g} in play by {run.player}, where {expected.low:g} to {expected.high:g} is expected: "
        f"{share:.1%} of its values lie far beyond",
        _REMEDY,
        Where(term=payer.name, agent=pay.agent, step=pay.step, episode=run.case, player=run.player),
        Evidence(
            numbers={"value": value, "low": expected.low, "high": expected.high, "share beyond": share},
            saw=f"expected from {expected.episodes} episodes: {expected.low:g} to {expected.high:g}",
            used=f"step {pay.step} of {run.case}, played by {run.player}: {value:g}",
        ),
    )


def _too_wide(material: Material, ranges: dict[str, Range]) -> Iterator[Finding]:
    """Hints whose range is many times that of all that the team is for."""
    small = hints(material, all_runs(material))
    outcomes = [p.name for p in payers(material, ("outcome",)) if p.name in ranges and p not in small]
    span = max((max(abs(ranges[n].low), abs(ranges[n].high), ranges[n].width) for n in outcomes), default=0.0)
    for payer in small:
        mine = ranges.get(payer.name)
        if mine is None or not span or mine.width <= WIDER * span:
            continue
        where, example = _largest(material, payer)
        yield error(
            f"a hint on the way pays {mine.low:g} to {mine.high:g} a step, {mine.width / span:.0f} times "
            f"as wide as all that the outcome can pay ({span:g})",
            "scale the hint to a fraction of the outcome, by its weight or in the term",
            where,
            Evidence(numbers={"width": mine.width, "outcome": span}, used=example),
        )


def _largest(material: Material, payer: Payer) -> tuple[Where, str]:
    played = [r for p in measured_players(material) for r in runs(material, p)]
    pairs = [(r, p) for r in played for p in r.pays.get(payer.name, ()) if p.value is not None]
    run, pay = max(pairs, key=lambda rp: abs(rp[1].value or 0.0))
    where = Where(term=payer.name, agent=pay.agent, step=pay.step, episode=run.case, player=run.player)
    return where, f"step {pay.step} of {run.case}: {pay.value:g}"
