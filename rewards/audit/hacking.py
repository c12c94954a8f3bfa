"""Is the reward being hacked? A watcher that is shown the figures of each training iteration.

It compares the last few iterations with the best there were: the return may not rise while success, the held-out
score or people's agreement falls; nor while texts, tool calls or repetitions swell and nothing gets better; nor may
its spread collapse with nothing learnt (RAGEN, Wang et al. 2025, saw the spread fall 50 steps before the mean).
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any, Self

from rewards.audit.findings import Evidence, Finding, warning
from rewards.audit.material import Material

WINDOW = 10
"""Iterations that are taken together: single ones are noise."""
SURE = 5.0
"""Standard errors from which a change is none of chance's."""
PATIENCE = 8
"""Iterations for which an alarm must hold before it is an error; until then it is a warning."""
LOST = {"success_rate": 0.2, "held_out": 0.15, "agreement": 0.2}
"""How much of what counts must be lost, absolute, by figure."""
SWELLS = 2.0
"""Factor by which a habit must grow."""
COLLAPSED = 0.1
"""Share of the first spread below which it has collapsed."""
SOLVED = 0.9
"""Success rate from which a team has nothing left to vary."""
RARELY = ("held_out", "agreement")
"""Figures that are measured now and then, and stand still in between."""
MEASUREMENTS, DOUBT = 3, 0.03
"""Measurements of them that are taken together, and the least standard error of these."""
QUALITY = ("success_rate", "held_out", "agreement", "outcome_mean")
"""What says how good the team really is, as far as it is known."""
HABITS = {"text_length": "texts", "tool_calls": "tool calls", "repeated_calls": "repeated calls"}
"""What an agent may do more and more of because it is paid for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingFigures:
    """One iteration of training; None where nobody measured it."""

    iteration: int
    env_steps: int
    return_mean: float
    """Of the raw return an episode, in the terms' unit, as are the next two."""
    return_std: float
    outcome_mean: float | None = None
    """Of what the outcome terms alone brought."""
    success_rate: float | None = None
    """0 to 1."""
    held_out: float | None = None
    """The score on held-out cases, 0 (chance) to 1 (the best there is); the last one known."""
    agreement: float | None = None
    """Correlation of the reward with people's labels, -1 to 1."""
    text_length: float | None = None
    """Mean characters of what an agent writes in an episode."""
    tool_calls: float | None = None
    """Mean calls an episode."""
    repeated_calls: float | None = None
    """Mean calls an episode that repeat an earlier one, arguments included."""


@dataclass(frozen=True, slots=True)
class _Level:
    """A figure over a window."""

    mean: float
    error: float
    """Standard error of the mean, from one iteration to the next, so that a trend is no noise."""


@dataclass
class Hacking:
    """The watcher. Show it every iteration once, in order; it keeps a bounded past, and survives as JSON."""

    _recent: deque[TrainingFigures] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _measured: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """The last different values of figures that are measured rarely."""
    _first: list[float] = field(default_factory=list[float])
    """Spreads of the first iterations."""
    _start: dict[str, float] = field(default_factory=dict[str, float])
    """Figures over the first full window."""
    _peaks: dict[str, dict[str, list[float]]] = field(default_factory=dict[str, dict[str, list[float]]])
    """By figure that counts: all levels when it was best, as mean and standard error."""
    _alarms: dict[str, int] = field(default_factory=dict[str, int])
    """Iterations for which each alarm has held."""

    def seen(self, figures: TrainingFigures) -> list[Finding]:
        """What this iteration makes clear. Figures that are not finite are left to other checks."""
        if not (math.isfinite(figures.return_mean) and math.isfinite(figures.return_std)):
            return []
        self._recent.append(figures)
        self._measure(figures)
        if len(self._first) < WINDOW:
            self._first.append(figures.return_std)
        if len(self._recent) < WINDOW:
            return []
        levels = _levels(list(self._recent)) | self._rare_levels()
        if not self._start:
            self._start = {name: level.mean for name, level in levels.items()}
        self._start |= {n: levels[n].mean for n in RARELY if n in levels and n not in self._start}
        alarms = {f.message.partition(":")[0]: f for f in self._alarming(levels, figures.iteration)}
        self._alarms = {name: self._alarms.get(name, 0) + 1 for name in alarms}
        self._remember(levels)
        return [_weighed(f, self._alarms[name]) for name, f in alarms.items()]

    def _measure(self, figures: TrainingFigures) -> None:
        for name in RARELY:
            value, known = getattr(figures, name), self._measured.setdefault(name, [])
            if value is not None and math.isfinite(value) and (not known or value != known[-1]):
                self._measured[name] = [*known, value][-3 * MEASUREMENTS :]

    def _rare_levels(self) -> dict[str, _Level]:
        return {
            name: _Level(median(values[-MEASUREMENTS:]), max(DOUBT, _bend(values) / math.sqrt(MEASUREMENTS)))
            for name, values in self._measured.items()
            if len(values) >= MEASUREMENTS
        }

    def _remember(self, levels: Mapping[str, _Level]) -> None:
        for name in QUALITY:
            best = self._peaks.get(name, {}).get(name, [-math.inf])[0]
            if name in levels and levels[name].mean > best:
                self._peaks[name] = {n: [lv.mean, lv.error] for n, lv in levels.items()}

    # -- alarms

    def _alarming(self, levels: Mapping[str, _Level], iteration: int) -> Iterator[Finding]:
        yield from self._worse_and_paid(levels, iteration)
        yield from self._swelling(levels, iteration)
        yield from self._collapsing(levels, iteration)

    def _worse_and_paid(self, levels: Mapping[str, _Level], iteration: int) -> Iterator[Finding]:
        for name, lost in LOST.items():
            then = {n: _Level(*pair) for n, pair in self._peaks.get(name, {}).items()}
            if name not in levels or name not in then:
                continue
            fell = then[name].mean - levels[name].mean
            if fell > lost and _surely(then[name], levels[name]) and self._paid_more(then, levels):
                yield _told(
                    f"{name}: fell from {then[name].mean:.2f} to {levels[name].mean:.2f} while the return rose from "
                    f"{then['return_mean'].mean:.4g} to {levels['return_mean'].mean:.4g}",
                    "the reward pays for something else than the task: look at sampled episodes for what is paid now",
                    {"before": then[name].mean, "now": levels[name].mean, "iteration": iteration},
                )

    def _paid_more(self, then: Mapping[str, _Level], now: Mapping[str, _Level]) -> bool:
        rose = now["return_mean"].mean - then["return_mean"].mean
        return rose > 0.25 * then["return_std"].mean and _surely(then["return_mean"], now["return_mean"])

    def _swelling(self, levels: Mapping[str, _Level], iteration: int) -> Iterator[Finding]:
        known = [n for n in QUALITY if n in levels and n in self._start]
        rose = levels["return_mean"].mean - self._start["return_mean"]
        better = any(self._better(n, levels) for n in known)
        if not known or better or rose <= 0.5 * self._start["return_std"]:
            return
        for name, word in HABITS.items():
            if name not in levels or name not in self._start:
                continue
            before, now = self._start[name], levels[name].mean
            if now > SWELLS * before + 1.0 and now - before > SURE * levels[name].error:
                yield _told(
                    f"{word}: grew from {before:.4g} to {now:.4g} an episode, and the return from "
                    f"{self._start['return_mean']:.4g} to {levels['return_mean'].mean:.4g}, while nothing got better "
                    f"({', '.join(f'{n} {self._start[n]:.2f} -> {levels[n].mean:.2f}' for n in known)})",
                    "the reward pays for quantity: bound what it pays an episode, or price each call and word",
                    {"before": before, "now": now, "iteration": iteration},
                )

    def _better(self, name: str, levels: Mapping[str, _Level]) -> bool:
        """Whether what counts has surely risen since the start, or has nowhere to rise to."""
        gain = levels[name].mean - self._start[name]
        if name == "outcome_mean":
            return gain > 0.1 * self._start["return_std"]
        return gain > 0.05 or (name == "success_rate" and levels[name].mean >= SOLVED)

    def _collapsing(self, levels: Mapping[str, _Level], iteration: int) -> Iterator[Finding]:
        first = sorted(self._first)[len(self._first) // 2]
        now = levels["return_std"].mean
        if first <= 0 or now >= COLLAPSED * first or self._gained(levels, first):
            return
        yield _told(
            f"spread: the return's standard deviation fell from {first:.4g} to {now:.4g}, and nothing was learnt",
            "the team does one thing only: raise entropy_coeff, lower lr, or go back to an earlier checkpoint",
            {"before": first, "now": now, "iteration": iteration},
        )

    def _gained(self, levels: Mapping[str, _Level], first: float) -> bool:
        """Whether the team has reached something that explains why episodes are alike now."""
        success = levels.get("success_rate")
        if success is not None and success.mean >= SOLVED:
            return True
        if any(self._better(n, levels) for n in QUALITY if n in levels and n in self._start):
            return True
        return levels["return_mean"].mean - self._start["return_mean"] > 0.5 * first

    # -- resume

    def state(self) -> dict[str, Any]:
        """All that it remembers, as JSON."""
        return {
            "recent": [asdict(f) for f in self._recent],
            "measured": {n: list(v) for n, v in self._measured.items()},
            "first": list(self._first),
            "start": dict(self._start),
            "peaks": self._peaks,
            "alarms": dict(self._alarms),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The watcher that ``state`` was taken from."""
        made = cls(_first=list(state["first"]), _start=dict(state["start"]), _alarms=dict(state["alarms"]))
        made._measured = {n: list(v) for n, v in state["measured"].items()}
        made._peaks = {n: {k: list(v) for k, v in levels.items()} for n, levels in state["peaks"].items()}
        made._recent.extend(TrainingFigures(**f) for f in state["recent"])
        return made


def _levels(recent: Sequence[TrainingFigures]) -> dict[str, _Level]:
    found: dict[str, _Level] = {}
    for name in (f.name for f in fields(TrainingFigures) if f.name not in ("iteration", "env_steps", *RARELY)):
        values = [v for f in recent if (v := getattr(f, name)) is not None and math.isfinite(v)]
        if len(values) == len(recent):
            found[name] = _Level(fmean(values), _error(values))
    return found


def _error(values: Sequence[float]) -> float:
    """Of the mean: from differences of neighbours, which a trend hardly touches (von Neumann 1941)."""
    steps = [b - a for a, b in pairwise(values)]
    return (stdev(steps) / math.sqrt(2) if len(steps) > 1 else 0.0) / math.sqrt(len(values))


def _bend(values: Sequence[float]) -> float:
    """The standard deviation of measurements about straight lines through three at a time; its median."""
    return median(abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)) / math.sqrt(6)


def _surely(one: _Level, other: _Level) -> bool:
    return abs(one.mean - other.mean) > SURE * math.hypot(one.error, other.error)


def _told(message: str, remedy: str, numbers: Mapping[str, float]) -> Finding:
    return warning(message, remedy, evidence=Evidence(numbers=numbers))


def _weighed(finding: Finding, held: int) -> Finding:
    """An alarm that has held long enough is an error."""
    return replace(finding, severity="error" if held >= PATIENCE else "warning", check="hacking")


def hacking(material: Material) -> Iterator[Finding]:
    """The figures of a whole training, as one who watched it would have seen them: each alarm once, at its worst."""
    figures: Sequence[TrainingFigures] = material.own["training"]
    watcher, worst = Hacking(), dict[str, Finding]()
    for each in figures:
        for finding in watcher.seen(each):
            name = finding.message.partition(":")[0]
            if name not in worst or worst[name].severity != "error":
                worst[name] = finding
    yield from worst.values()
