"""Terms that turn failures into numbers: what they read is made to fail, and only a missing reward may follow."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewards.audit.findings import Evidence, Finding, Where, error, warning
from rewards.audit.judging import views
from rewards.audit.material import Material
from rewards.audit.mistakes import Mistake, Watched
from rewards.audit.playing import Episode
from rewards.audit.tampering import Watching, parts_read
from rewards.deadline import called
from rewards.mix import PastView, Weighted, number
from runtime.errors import RewardFault
from runtime.leaves import leaves, replaced
from runtime.records import ToolAnswered

PARTS = ("truth", "outcome", "success", "history", "step", "visible")
"""What can be made to fail."""


class PlantedFault(Exception):
    """A failure that no term expects by name: who turns it into a number turns every failure into one."""


_FAULTS: tuple[Callable[[], BaseException], ...] = (
    lambda: PlantedFault("planted by the audit"),
    lambda: RewardFault("planted by the audit"),
    lambda: TimeoutError("planted by the audit"),
    lambda: ConnectionError("planted by the audit"),
)


def swallowed(material: Material, weighted: Weighted, remedy: str) -> Iterator[Finding]:
    """Faults at each part that the term reads, in each value of it; in more episodes, those that play itself brings."""
    watched = Watched(weighted)
    for player in dict.fromkeys(p for p in ("random", material.best, "empty", "ask_everything") if p):
        for place, episode in enumerate(material.episodes(player, 3 * material.effort.examples)):
            for view in _sample(weighted, episode):
                if place < max(2, material.effort.examples // 3):
                    for what, value in (*_at_parts(weighted, episode, view), *_at_values(weighted, view)):
                        yield _told(weighted, episode, view, f"{what} and still pays {value:g}", remedy)
                watched.judge(view)
                for mistake in watched.surely:
                    yield _told(weighted, episode, view, f"meets {mistake} and pays all the same", remedy)
    yield from (_never_works(weighted, m, remedy) for m in watched.never_working())
    yield from (_now_and_then(weighted, m, remedy) for m in watched.now_and_then())


def _sample(weighted: Weighted, episode: Episode) -> list[PastView]:
    steps = sorted({0, episode.steps // 2, max(0, episode.steps - 2), episode.steps - 1})
    return [v for s in steps for v in views(weighted, episode, s)]


def _told(weighted: Weighted, episode: Episode, view: PastView, what: str, remedy: str) -> Finding:
    step = next(s for s in range(episode.steps) if episode.cuts[s] == view.since)
    code = getattr(weighted.term.function, "__code__", None)
    return error(
        f"turns failure into a number: it {what}",
        remedy,
        Where(term=weighted.term.name, agent=view.agent, step=step, episode=episode.name, player=episode.player),
        Evidence(used=f"{code.co_filename}:{code.co_firstlineno}" if code else ""),
    )


def _never_works(weighted: Weighted, mistake: Mistake, remedy: str) -> Finding:
    return error(
        f"turns failure into a number: what it tries never works, it meets {mistake} each time and pays all the same",
        remedy,
        Where(term=weighted.term.name),
        Evidence(numbers={"times": mistake.times}, used=mistake.line),
    )


def _now_and_then(weighted: Weighted, mistake: Mistake, remedy: str) -> Finding:
    return warning(
        f"may turn failure into a number: now and then it meets {mistake} and pays all the same",
        f"ask first (isinstance, is None) where that is a case like any other; else {remedy}",
        Where(term=weighted.term.name),
        Evidence(numbers={"times": mistake.times, "of": mistake.reached}, used=mistake.line),
    )


# -- a part of the view fails


def _at_parts(weighted: Weighted, episode: Episode, view: PastView) -> Iterator[tuple[str, float]]:
    reads = parts_read(weighted, episode)
    for part in PARTS:
        if part in reads:
            for make in _FAULTS:
                watching = Watching(view, part, make())
                value = _number(weighted, watching)
                if part in watching.read and value is not None:
                    yield f"cannot read view.{part} ({type(make()).__name__})", value


def _number(weighted: Weighted, view: Any) -> float | None:
    try:
        return number(called(weighted.term, view))
    except Exception:  # noqa: BLE001 - to fail is what is asked of it here
        return None


# -- a value in it fails


class _Failing:
    """A value that raises at whatever is done with it, and knows that it did."""

    def __init__(self, make: Callable[[], BaseException]) -> None:
        self.met = False
        self._make = make

    def _fail(self, *_: Any, **__: Any) -> Any:
        self.met = True
        raise self._make()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _fail
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __str__ = __format__ = __call__ = _fail
    __int__ = __float__ = __index__ = __abs__ = __neg__ = __round__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail

    def __getattr__(self, name: str) -> Any:
        """No part of it can be had either."""
        return self._fail()


def _at_values(weighted: Weighted, view: PastView) -> Iterator[tuple[str, float]]:
    """Every value of the outcome, the truth and the step's answers fails at once, in one of them at a time."""
    episode = view.played
    for make in _FAULTS:
        for part in ("outcome", "truth", "answers"):
            failing = _Failing(make)
            altered = _with(episode, view, part, failing)
            if altered is not None:
                value = _number(weighted, altered)
                if failing.met and value is not None:
                    yield f"meets {type(make()).__name__} in the {part}", value


def _with(episode: Any, view: PastView, part: str, failing: _Failing) -> PastView | None:
    from dataclasses import replace

    if part == "answers":
        records = list(episode.records)
        for place in range(view.since, view.end):
            if isinstance(records[place], ToolAnswered) and records[place].ok:
                records[place] = records[place].model_copy(update={"value": failing})
        return replace(view, played=replace(episode, records=records))
    if part == "outcome":
        return replace(view, played=replace(episode, outcome=_all_failing(episode.outcome, failing)))
    truth = _all_failing(episode.scenario.truth, failing)
    return replace(view, played=replace(episode, scenario=replace(episode.scenario, truth=truth)))


def _all_failing(values: Mapping[str, Any], failing: _Failing) -> Mapping[str, Any]:
    found: Any = dict(values)
    for path, _ in leaves(dict(values)):
        found = replaced(found, path, failing)
    return found
