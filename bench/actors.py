"""What an agent costs beside a bare Ray actor that does the same: alone, and with a store that keeps everything."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options
from runtime.actor import Agent, AgentActor, AgentSpec
from runtime.actor import Outcome as Came
from runtime.actor.starting import LOCAL, start_ray
from runtime.bus.event import Event

CALLS = 300
"""Calls a lap: a few tenths of a second, over which the machine's load hardly changes."""
ROUNDS = 7
"""Laps of each contestant, one after the other in turns; medians of them are compared."""
NEAR = 1.3
"""Our call without a store, in bare calls."""
TWO = 2.0
"""What the store adds to a call is one transaction: less than the time of two such made without Ray."""


class Counting:
    """Counts."""

    schema = 1

    def handle(self, state: Any, event: Event) -> Came:
        """One more."""
        count = (state or 0) + event.payload["add"]
        return Came(state=count, reply=count)


class Bare:
    """The same as a plain actor would do it."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, payload: Any) -> int:
        """One more."""
        self.count += payload["add"]
        return self.count


def calls(options: Options) -> Outcome:
    """Calls one after the other from one caller."""
    import ray

    count, rounds = (20, 1) if options.quick else (CALLS, ROUNDS)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        start_ray(**LOCAL, num_cpus=2)
        try:
            laps = _laps(Path(folder), count, rounds)
        finally:
            ray.shutdown()
    us = {name: 1e6 * median(found) / count for name, found in laps.items()}
    ratio = median([o / b for o, b in zip(laps["ours"], laps["bare"], strict=True)])
    more = median([s - o for s, o in zip(laps["ours_with_store"], laps["ours"], strict=True)])
    alone = median([s - o for s, o in zip(laps["here_with_store"], laps["here"], strict=True)])
    return Outcome(
        claims=(
            Claim(what="of a bare actor's call, store off", unit="×", measured=ratio, target=NEAR, at_least=False),
            Claim(what="transactions more, store on", unit="×", measured=more / alone, target=TWO, at_least=False),
            *(Claim(what=f"a call, {n.replace('_', ' ')}", unit="µs", measured=v) for n, v in us.items()),
        ),
        figures={"rounds": rounds, "calls": count, "us_per_call": us, "laps_s": laps},
    )


def _laps(folder: Path, count: int, rounds: int) -> dict[str, list[float]]:
    import ray

    spec = AgentSpec(team="bench", role="counter", make=Counting)
    kept = [
        AgentSpec(team=f"bench{i}", role="counter", make=Counting, store=f"sqlite:///{folder}/store{i}.db")
        for i in range(2)
    ]
    bare: Any = ray.remote(Bare).remote()
    ours, stored = AgentActor.start(spec), AgentActor.start(kept[0])
    here, here_stored = Agent(spec), Agent(kept[1])
    contestants: dict[str, Callable[[], Any]] = {
        "bare": lambda: ray.get(bare.tell.remote({"add": 1}), timeout=60),
        "ours": lambda: ours.tell(_event()),
        "ours_with_store": lambda: stored.tell(_event()),
        "here": lambda: here.tell(_event("here")),
        "here_with_store": lambda: here_stored.tell(_event("here")),
    }
    laps: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, call in contestants.items():
            began = time.perf_counter()
            for _ in range(count):
                call()
            if turn:  # the first lap warms up
                laps[name].append(time.perf_counter() - began)
    ours.stop()
    stored.stop()
    here_stored.stop()
    return laps


_ids = iter(range(1_000_000_000))


def _event(session: str = "s") -> Event:
    return Event(to="counter", correlation_id=session, event_id=f"e{next(_ids)}", payload={"add": 1})
