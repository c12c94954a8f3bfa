"""Answers that say nothing, paid like right ones: ``"" in text``, ``all([])``, a subset that is empty."""

from collections.abc import Iterator, Sequence

from rewards.audit.figures import Run, finite_runs
from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.playing import Episode
from rewards.audit.tampering import blank, garble, paid_for, reworded
from rewards.mix import Weighted
from runtime.leaves import leaves

CASES = 20
"""Cases that are looked at."""
OFTEN = 0.5
"""Share of them in which a blank must be paid like a right answer."""


def blank_paid(weighted: Weighted, found: Sequence[Run]) -> Iterator[Finding]:
    """In each case, what was paid best is said again in blank, and in a word that is no answer."""
    if weighted.term.kind == "cost":
        return
    cases: dict[str, list[Run]] = {}
    for run in finite_runs(found, weighted.term.name):
        cases.setdefault(run.case, []).append(run)
    judged, fooled = 0, list[tuple[Episode, int, float]]()
    for runs in list(cases.values())[:CASES]:
        best = _best_paid(weighted, runs)
        if best is None:
            continue
        episode, step, paid = best
        wrong = paid_for(weighted, reworded(episode, step, garble), step)
        if wrong is None or wrong >= paid:
            continue  # words do not count here
        judged += 1
        nothing = paid_for(weighted, reworded(episode, step, blank), step)
        if nothing is not None and nothing >= paid:
            fooled.append(best)
    if fooled and len(fooled) >= OFTEN * judged:
        yield _told(weighted, *fooled[0])


def _best_paid(weighted: Weighted, runs: Sequence[Run]) -> tuple[Episode, int, float] | None:
    """The step that was paid most, and more than the least paid one."""
    pays = [(r, p) for r in runs for p in r.pays.get(weighted.term.name, ()) if p.value is not None]
    if not pays:
        return None
    run, pay = max(pays, key=lambda rp: rp[1].value or 0.0)
    episode = run.played
    if not isinstance(episode, Episode) or not _says_something(episode, pay.step):
        return None
    paid = paid_for(weighted, episode, pay.step)
    least = min(p.value or 0.0 for _, p in pays)
    return (episode, pay.step, paid) if paid is not None and (pay.value or 0.0) > least else None


def _says_something(episode: Episode, step: int) -> bool:
    records = episode.records[episode.cuts[step] : episode.ends[step]]
    said = [r.model_dump(include={"value", "payload", "args", "call"}) for r in records]
    said += [dict(episode.outcome)] if step == episode.steps - 1 else []
    return any(isinstance(v, str) and v for each in said for _, v in leaves(each))


def _told(weighted: Weighted, episode: Episode, step: int, paid: float) -> Finding:
    last = step == episode.steps - 1
    return error(
        f"an empty answer is paid {paid:g}, like a right one; a wrong one is paid less",
        "ask first whether there is an answer: every text holds the empty one, and nothing is wrong in an empty list",
        Where(term=weighted.term.name, step=step, episode=episode.name, player=episode.player),
        Evidence(
            saw=f"outcome {dict(episode.outcome)}" if last else f"step {step}",
            used=f"paid {paid:g} with every text in it empty",
        ),
    )
