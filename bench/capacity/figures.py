"""What was measured, foretold and planned, as figures that are kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.capacity import live, served
from bench.capacity.live import Live
from bench.capacity.model import Layout, Simulated, Stop, at_once, at_rate
from bench.capacity.planning import MINUTES, Step, full_at, peak_rate, plan
from bench.capacity.served import Served

MODEL_S = 1.0
"""What a language model that is asked over the network takes for one decision (s): an assumption."""
FORETOLD = 2000
"""Sessions of a simulation that foretells a measured lap."""


def live_stops(found: Live) -> list[Stop]:
    """A session's way on the live runtime: its client, each role, and its client again."""
    hops = len(found.roles) + 1
    redis_s = found.costs[live.REDIS].cpu_s / hops
    client = found.costs[live.CLIENT]
    half = replace(client, cpu_s=client.cpu_s / 2, held_s=client.held_s / 2, synced_s=client.synced_s / 2)
    roles = [Stop(part=role, cost=found.costs[role], redis_s=redis_s) for role in found.roles]
    return [Stop(part=live.CLIENT, cost=half, redis_s=redis_s), *roles, Stop(part=live.CLIENT, cost=half)]


def asking(stops: Sequence[Stop], found: Live) -> list[Stop]:
    """The same with roles that ask a model for each decision."""
    each_s = MODEL_S * found.decisions / len(found.roles)
    return [replace(s, waits_s=each_s) if s.part in found.roles else s for s in stops]


def served_stops(found: Served) -> list[Stop]:
    """A session's way over HTTP: as many requests as it has, each through all parts."""
    parts = (served.CLIENT, served.PROXY, served.ROUTER, served.SEAT)
    return [Stop(part=p, cost=found.costs[p]) for _ in range(round(found.requests)) for p in parts]


def here(cores: int, others: float) -> Layout:
    """This machine, with what others left of it."""
    return Layout(cores=cores, speed=max(0.05, 1 - others / cores))


def live_figures(found: Live, cores: int, minutes: float = MINUTES) -> dict[str, Any]:
    """Everything about the live runtime, as JSON. ``minutes``: how much of the busiest hour is simulated."""
    stops = live_stops(found)
    at_once_ = at_once(stops, here(cores, found.together.others), live.WINDOW, FORETOLD)
    paced = at_rate(stops, here(cores, found.paced.others), found.rate, FORETOLD)
    alone = at_once(stops, here(cores, found.alone.others), 1, FORETOLD)
    return {
        "costs_ms": {name: _ms(c) for name, c in found.costs.items()},
        "decisions": found.decisions,
        "laps": {n: getattr(found, n).as_json() for n in ("alone", "together", "paced")},
        "rate": found.rate,
        "full_at": full_at(stops, cores),
        "checked": [
            _checked("sessions a second, 64 at once", at_once_.per_s, found.together.per_s),
            _checked("median session alone, ms", 1e3 * alone.quantile(0.5), 1e3 * found.alone.median_s),
            _checked("median session at half the load, ms", 1e3 * paced.quantile(0.5), 1e3 * found.paced.median_s),
        ],
        "plan": _steps(plan(stops, Layout(cores=cores), peak_rate(), minutes)),
        "asking": _steps(plan(asking(stops, found), Layout(cores=cores), peak_rate(), minutes)),
    }


def served_figures(found: Served, cores: int, minutes: float = MINUTES) -> dict[str, Any]:
    """Everything about serving, as JSON. ``minutes``: how much of the busiest hour is simulated."""
    stops = served_stops(found)
    together = at_once(stops, here(cores, found.together.others), served.CLIENTS, FORETOLD)
    alone = at_once(stops, here(cores, found.alone.others), 1, FORETOLD)
    return {
        "costs_ms": {name: _ms(c) for name, c in found.costs.items()},
        "requests": found.requests,
        "laps": {n: getattr(found, n).as_json() for n in ("alone", "together")},
        "full_at": full_at(stops, cores),
        "checked": [
            _checked("sessions a second, 8 clients", together.per_s, found.together.per_s),
            _checked("median session alone, ms", 1e3 * alone.quantile(0.5), 1e3 * found.alone.median_s),
        ],
        "plan": _steps(plan(stops, Layout(cores=cores), peak_rate(), minutes)),
    }


def _ms(cost: Any) -> dict[str, float]:
    return {"cpu": 1e3 * cost.cpu_s, "held": 1e3 * cost.held_s, "synced": 1e3 * cost.synced_s}


def _checked(what: str, foretold: float, measured: float) -> dict[str, Any]:
    return {"what": what, "foretold": foretold, "measured": measured, "ratio": foretold / measured}


def _steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [_step(s.layout, s.simulated, s.doubled) for s in steps]


def _step(layout: Layout, came: Simulated, doubled: str | None) -> dict[str, Any]:
    return {
        "cores": layout.cores,
        "parts": dict(layout.parts),
        "stores": layout.stores,
        "redis": layout.redis,
        "per_s": came.per_s,
        "p95_s": came.quantile(0.95),
        "fullest": came.fullest,
        "used": came.used[came.fullest],
        "doubled": doubled,
    }
