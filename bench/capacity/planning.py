"""From costs to a plan: what is full first at a million sessions a day, and what is doubled then."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.capacity.model import CORES, REDIS, STORE, Layout, Simulated, Stop, at_rate, whole

SESSIONS_A_DAY = 1_000_000
PEAK = 2.5
"""The busiest hour's rate in daily means: an assumption, of people who sleep at night."""
FULL = 0.7
"""Share of the time above which a part counts as full: queues grow fast from there."""
MINUTES = 2.0
"""How much of the busiest hour is simulated."""
STEPS = 24
"""Doublings after which a plan is given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A layout, and what came of it."""

    layout: Layout
    simulated: Simulated
    doubled: str | None
    """What was full, and is doubled for the next step; None: nothing was."""


def peak_rate(sessions_a_day: float = SESSIONS_A_DAY) -> float:
    """Sessions a second in the busiest hour."""
    return PEAK * sessions_a_day / 86_400


def plan(stops: Sequence[Stop], layout: Layout, rate: float, minutes: float = MINUTES) -> list[Step]:
    """Double what is fullest until nothing is full any more."""
    steps: list[Step] = []
    layout = whole(stops, layout)
    for _ in range(STEPS):
        simulated = at_rate(stops, layout, rate, sessions=int(rate * minutes * 60))
        full = simulated.fullest if simulated.used[simulated.fullest] > FULL else None
        steps.append(Step(layout=layout, simulated=simulated, doubled=full))
        if full is None:
            break
        layout = layout.more(full)
    return steps


def full_at(stops: Sequence[Stop], cores: int) -> dict[str, float]:
    """Sessions a second at which each part has no time left, by its own work alone."""
    cpu = sum(s.cost.cpu_s + s.cost.held_s + s.redis_s for s in stops)
    shared = {CORES: cpu / cores, STORE: sum(s.cost.held_s for s in stops), REDIS: sum(s.redis_s for s in stops)}
    own: dict[str, float] = {}
    for stop in stops:
        own[stop.part] = own.get(stop.part, 0.0) + stop.cost.own_s + stop.waits_s
    return {name: 1 / s for name, s in {**shared, **own}.items() if s > 0}
