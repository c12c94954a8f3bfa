"""The part of docs/scaling.md that is written from the figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.capacity.figures import MODEL_S
from bench.capacity.planning import FULL, MINUTES, PEAK, SESSIONS_A_DAY, peak_rate

HEAD = """{day:,} sessions a day are {mean:.1f} a second on average and {rate:.0f} in the busiest hour, if that has
{peak:g} times the average (an assumption); {minutes:g} minutes of that hour are simulated. A part is full when it is
at work {full:.0%} of the time, and the fullest one is doubled.
"""
WHERE = """Measured on {date}, {cores} cores ({cpu}), load {load} at the start.
"""
LIVE = """**Live, on the bus**: the supply-chain team, untrained, {decisions:.1f} decisions a session. {where}
What one session costs each part, one session after the other:
"""
CHECK = """
The model is given these costs, and nothing of what it foretells here; *ratio* is foretold over measured:
"""
PLAN = """
A million a day, starting from this machine:
"""
ASKING = """
The same where every decision asks a language model that takes {model:g} s (an assumption). A role's process decides one
case after another, so it is the roles' processes, that is the shards of their streams, that there must be more of:
"""
SERVED = """
**Served, over HTTP**: {requests:.1f} requests a session. {where}
What one request costs each part:
"""


def fragment(figures: Mapping[str, Any]) -> str:
    """The whole of it, as Markdown: of what has been measured."""
    told = HEAD.format(
        day=SESSIONS_A_DAY,
        mean=SESSIONS_A_DAY / 86_400,
        rate=peak_rate(),
        peak=PEAK,
        minutes=MINUTES,
        full=FULL,
    )
    parts = [told, *(_live(figures["live"]) if "live" in figures else ())]
    parts += _served(figures["served"]) if "served" in figures else ["\nServing has not been measured yet."]
    return "\n".join(parts) + "\n"


def _live(found: Mapping[str, Any]) -> list[str]:
    return [
        LIVE.format(decisions=found["decisions"], where=_where(found)),
        *_costs(found),
        CHECK,
        *_checks(found),
        PLAN,
        *_plan(found["plan"]),
        ASKING.format(model=MODEL_S),
        *_plan(found["asking"]),
    ]


def _served(found: Mapping[str, Any]) -> list[str]:
    told = SERVED.format(requests=found["requests"], where=_where(found))
    return [told, *_costs(found), CHECK, *_checks(found), PLAN, *_plan(found["plan"])]


def _where(found: Mapping[str, Any]) -> str:
    at = found["machine"]
    return WHERE.format(date=found["date"], cores=at["cores"], cpu=at["cpu"], load=at["load_1min"]).strip()


def _costs(figures: Mapping[str, Any]) -> list[str]:
    full = figures["full_at"]
    rows = [
        f"| {name} | {c['cpu']:.2f} | {c['held']:.2f} | {c['synced']:.2f} | {_rate(full.get(name))} |"
        for name, c in figures["costs_ms"].items()
    ]
    shared = [f"| {name}, all parts |  |  |  | {_rate(full.get(name))} |" for name in ("store's writer", "cores")]
    head = ["| part | CPU, ms | writing, ms | disk, ms | full at, sessions/s |", "|---|---|---|---|---|"]
    return [*head, *rows, *shared]


def _rate(per_s: float | None) -> str:
    """None: what takes too little to be seen is never full."""
    return "" if per_s is None else f"{per_s:,.0f}"


def _checks(figures: Mapping[str, Any]) -> list[str]:
    rows = [
        f"| {c['what']} | {c['foretold']:.1f} | {c['measured']:.1f} | {c['ratio']:.2f} |" for c in figures["checked"]
    ]
    return ["| | foretold | measured | ratio |", "|---|---|---|---|", *rows]


def _plan(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first layout and the last, and what was doubled in between, in that order."""
    head = ["| there are | sessions/s | 95th percentile, s | fullest |", "|---|---|---|---|"]
    rows = [
        f"| {_there(s)} | {s['per_s']:.1f} | {s['p95_s']:.3g} | {s['fullest']}, {s['used']:.0%} |"
        for s in (steps[:1] if len(steps) == 1 else (steps[0], steps[-1]))
    ]
    order = [s["doubled"] for s in steps if s["doubled"]]
    told = f"Doubled, one after the other: {', '.join(order)}." if order else "Nothing is full."
    return [*head, *rows, "", told]


def _there(step: Mapping[str, Any]) -> str:
    several = {**step["parts"], "stores": step["stores"], "Redis servers": step["redis"]}
    more = [f"{n} {name}" for name, n in several.items() if n > 1]
    return ", ".join([f"{step['cores']} cores", *more]) + ("" if more else ", one of each part")
