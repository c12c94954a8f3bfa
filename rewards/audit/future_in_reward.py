"""Non-anticipation: what a step is worth was settled when it was taken.

The step is judged live, as training does; again on the episode cut after it; in hindsight on the whole episode; and
with everything after it replaced. A term that takes only its view gives one and the same value. In many more cases it
is judged on the cut and on the whole episode, and on the same case under another name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.judging import Pay, cut, in_hindsight, spliced, with_truth
from rewards.audit.material import Material
from rewards.audit.playing import Episode, Sitting
from rewards.mix import Weighted
from runtime.records import EpisodeOpened, Json, Rewarded

Truth = Mapping[str, Json]

FIRST = 50_000
"""Scenarios from here on are the check's own where there is no end of them: no term has met them before."""
SAME = 1e-9
"""Relative difference below which two values are one."""
_BEYOND = ("is not in the past", "without declaring it", "before the episode has ended")
"""What the view says when it is asked for more than it has."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """An episode, what it was paid live, and the ones that replace its tail."""

    episode: Episode
    live: dict[tuple[str, int, str], float | None]
    others: tuple[Episode, ...]


def future_in_reward(material: Material) -> Iterator[Finding]:
    """Every term, over varied play: judged live, cut, whole, and with other tails and other truths."""
    names = dict.fromkeys(n for n in ("random", "ask_everything", material.best, "first_legal") if n)
    places = count(FIRST if material.counts.get("train") is None else 0, 2)
    each = max(1, material.effort.examples // 4)
    trials = [_trial(material, name, next(places)) for name in names for _ in range(each)]
    truths = [t.others[1].scenario.truth for t in trials]
    for weighted in material.mix.terms:
        tried = (f for t in trials for f in _tried(weighted, t, truths))
        yield from _first_of_each(chain(tried, _in_many_cases(material, weighted, names)))


def _in_many_cases(material: Material, weighted: Weighted, names: Iterable[str]) -> Iterator[Finding]:
    """What may come up in one case of many: a future that counts, and a case that is known by its name."""
    for episode in (e for name in names for e in material.episodes(name, material.effort.episodes)):
        for step in range(episode.steps):
            before = cut(episode, step)
            pays = in_hindsight(weighted, before, step)
            others = [in_hindsight(weighted, e, step) for e in (_renamed(before), episode, before)]
            for pay in pays:
                renamed, whole, again = (_same_agent(other, pay) for other in others)
                if not _equal(pay.value, again.value):
                    yield _unrepeatable(pay, again, _where(pay, episode))
                    return
                if not _equal(pay.value, whole.value):
                    yield _anticipates(pay, whole, "the rest of the episode is on record", episode)
                if not _equal(pay.value, renamed.value):
                    yield _knows_the_name(pay, renamed, _where(pay, episode))


def _renamed(episode: Episode) -> Episode:
    """The same case under a name that no other has."""
    name = "a case of another name"
    records = [r.model_copy(update={"scenario": name}) if isinstance(r, EpisodeOpened) else r for r in episode.records]
    return replace(episode, records=records, scenario=replace(episode.scenario, id=name))


def _first_of_each(found: Iterator[Finding]) -> Iterator[Finding]:
    """One finding of each kind, and none after the first error: the rest follows from it."""
    told: set[str] = set()
    for finding in found:
        kind = finding.remedy
        if kind not in told:
            told.add(kind)
            yield finding
        if finding.severity == "error":
            return


def _trial(material: Material, player: str, index: int) -> _Trial:
    end = material.counts.get("train")
    here, there = (material.scenario(k if end is None else k % end) for k in (index, index + 1))
    sitting = material.sit(player, here, paid=True)
    live: dict[tuple[str, int, str], float | None] = {}
    while not sitting.over:
        live |= _paid(sitting)
    contrary = "empty" if player != "empty" else "random"
    others = (material.sit(contrary, here, paid=True), material.sit("last_legal", there, paid=True))
    return _Trial(sitting.episode(), live, tuple(_finished(o) for o in others))


def _paid(sitting: Sitting) -> dict[tuple[str, int, str], float | None]:
    since = len(sitting.table.records)
    step = sitting.steps
    sitting.step()
    return {(r.term, step, r.agent): r.value for r in sitting.table.records[since:] if isinstance(r, Rewarded)}


def _finished(sitting: Sitting) -> Episode:
    while not sitting.over:
        sitting.step()
    return sitting.episode()


# -- one term on one episode


def _tried(weighted: Weighted, trial: _Trial, truths: Sequence[Truth]) -> Iterator[Finding]:
    episode = trial.episode
    for step in range(episode.steps):
        before = cut(episode, step)
        for pay in in_hindsight(weighted, before, step):
            where = _where(pay, episode)
            if any(told in pay.missing for told in _BEYOND):
                yield _beyond(pay, where)
                continue
            again = _same_agent(in_hindsight(weighted, before, step), pay)
            if not _equal(pay.value, again.value):
                yield _unrepeatable(pay, again, where)
                return
            live = trial.live.get((pay.term, step, pay.agent))
            if not _equal(pay.value, live):
                yield _remembers(live, pay.value, where)
            yield from _tampered(weighted, trial, pay)
            if not weighted.term.reads:
                yield from _with_other_truths(weighted, before, pay, truths)


def _tampered(weighted: Weighted, trial: _Trial, pay: Pay) -> Iterator[Finding]:
    episode, step = trial.episode, pay.step
    if step == episode.steps - 1:
        return
    unpaid = cut(episode, episode.steps - 1)
    variants = [(v, "the rest of the episode is on record") for v in (unpaid, episode)]
    tails = [t for o in trial.others for t in (cut(o, o.steps - 1), o)]
    variants += [(spliced(episode, step, t), "another episode's tail follows") for t in tails]
    for variant, what in variants:
        then = _same_agent(in_hindsight(weighted, variant, step), pay)
        if not _equal(pay.value, then.value):
            yield _anticipates(pay, then, what, variant)


def _with_other_truths(weighted: Weighted, before: Episode, pay: Pay, truths: Sequence[Truth]) -> Iterator[Finding]:
    for truth in truths:
        then = _same_agent(in_hindsight(weighted, with_truth(before, truth), pay.step), pay)
        if not _equal(pay.value, then.value):
            yield _knows_truth(pay, then, _where(pay, before))


def _same_agent(pays: list[Pay], pay: Pay) -> Pay:
    return next((p for p in pays if p.agent == pay.agent), Pay(pay.term, pay.agent, pay.step, None, "not judged"))


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SAME * (1.0 + abs(one))


# -- what is said


def _where(pay: Pay, episode: Episode) -> Where:
    return Where(term=pay.term, agent=pay.agent, step=pay.step, episode=episode.name, player=episode.player)


def _shown(value: float | None) -> str:
    return "missing" if value is None else f"{value:g}"


def _numbers(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _beyond(pay: Pay, where: Where) -> Finding:
    return error(
        f"{pay.missing} ({pay.line})",
        "read view.history, view.step and what the term declares: term(reads=[…], at_end=True)",
        where,
        Evidence(used=pay.line),
    )


def _unrepeatable(pay: Pay, again: Pay, where: Where) -> Finding:
    return warning(
        f"judged twice on the same records it says {_shown(pay.value)} and {_shown(again.value)}: it cannot be checked",
        "compute the value from the view alone, without chance and without counting calls",
        where,
        Evidence(numbers=_numbers(first=pay.value, second=again.value)),
    )


def _remembers(live: float | None, later: float | None, where: Where) -> Finding:
    return error(
        f"paid {_shown(live)} when it was taken, and {_shown(later)} on the same records once others have been played: "
        "the term reads something outside its view, such as a global, a cache or the running world",
        "compute the value from the view alone: no module state, no kept references",
        where,
        Evidence(numbers=_numbers(live=live, later=later)),
    )


def _anticipates(pay: Pay, then: Pay, what: str, variant: Episode) -> Finding:
    following = variant.records[variant.ends[pay.step] :]
    return error(
        f"worth {_shown(pay.value)} on the records up to the step, and {_shown(then.value)} when {what}",
        "read view.history and view.step only: the reward of a step may not wait for what comes after it",
        _where(pay, variant),
        Evidence(
            numbers=_numbers(cut=pay.value, with_a_future=then.value),
            saw=f"up to the step: {_line(variant.records[variant.ends[pay.step] - 1])}",
            used=f"after the step: {_line(following[-1]) if following else ''}",
        ),
    )


def _knows_the_name(pay: Pay, then: Pay, where: Where) -> Finding:
    return error(
        f"worth {_shown(pay.value)}, and {_shown(then.value)} when the same case has another name: what is looked up "
        "under a name, such as the truth, nobody could know",
        "read what the case shows, or declare the truth: term(reads=['truth']); draw chance from the correlation id",
        where,
        Evidence(numbers=_numbers(name=pay.value, other_name=then.value), used=f"the name {where.episode}"),
    )


def _knows_truth(pay: Pay, then: Pay, where: Where) -> Finding:
    return error(
        f"worth {_shown(pay.value)}, and {_shown(then.value)} with another hidden truth behind the same records, "
        "though it declares to read neither truth nor outcome",
        "declare it: term(reads=['truth'])",
        where,
        Evidence(numbers=_numbers(truth=pay.value, other_truth=then.value)),
    )


def _line(record: object) -> str:
    return str(record)[:300]
