"""The capacity model: queues with known answers, plans that double what is full, a page as it was measured."""

import json
import time
from pathlib import Path

import pytest

from bench.capacity.__main__ import KEPT, PAGE, main, written
from bench.capacity.clock import HELD_S, TURNS, clock_writes, totals
from bench.capacity.costs import Cost
from bench.capacity.model import CORES, STORE, Layout, Stop, at_once, at_rate
from bench.capacity.page import fragment
from bench.capacity.planning import FULL, full_at, plan
from runtime.store import marks, open_store


def stop(part: str, **ms: float) -> Stop:
    """A stop whose costs are given in ms."""
    cost = Cost(cpu_s=ms.get("cpu", 0) / 1e3, held_s=ms.get("held", 0) / 1e3, synced_s=ms.get("synced", 0) / 1e3)
    return Stop(part=part, cost=cost, waits_s=ms.get("waits", 0) / 1e3)


def test_one_queue_is_as_long_as_theory_says() -> None:
    """M/M/1 at half its rate: sessions take 1 / (mu - lambda) on average, and the part is busy half the time."""
    found = at_rate([stop("clerk", cpu=10)], Layout(cores=8), rate=50.0, sessions=40_000)
    assert sum(found.latencies_s) / 40_000 == pytest.approx(1 / (100 - 50), rel=0.06)
    assert found.used["clerk"] == pytest.approx(0.5, rel=0.03)
    assert found.used[CORES] == pytest.approx(0.5 / 8, rel=0.03)


@pytest.mark.parametrize(
    ("layout", "bottleneck", "per_s"),
    [
        (Layout(cores=1, parts={"first": 8, "second": 8}), CORES, 1000 / 20),
        (Layout(cores=9, parts={"first": 8, "second": 8}), STORE, 1000 / 12),
        (Layout(cores=9, stores=64), "first", 1000 / 11),
    ],
    ids=["one core", "one writer", "one process"],
)
def test_many_at_once_go_as_fast_as_the_narrowest_part(layout: Layout, bottleneck: str, per_s: float) -> None:
    """What there is too little of is what all wait for: sessions end at its rate, and it is never idle."""
    stops = [stop("first", cpu=5, held=6), stop("second", cpu=3, held=6)]
    found = at_once(stops, layout, window=64, sessions=6_000)
    assert found.fullest == bottleneck
    assert found.per_s == pytest.approx(per_s, rel=0.08)
    assert full_at(stops, layout.cores)[bottleneck] == pytest.approx(per_s)


def test_a_slower_core_is_a_slower_machine() -> None:
    """With half of each core left, half as many sessions end."""
    stops = [stop("clerk", cpu=10)]
    whole, half = (at_once(stops, Layout(cores=1, speed=s), window=4, sessions=3_000) for s in (1.0, 0.5))
    assert half.per_s == pytest.approx(whole.per_s / 2, rel=0.01)


def test_a_plan_doubles_what_is_full_until_nothing_is() -> None:
    """A role that waits for a model is what there must be more of; cores and store stay as they are."""
    stops = [stop("client", cpu=1), stop("role", cpu=1, waits=100)]
    steps = plan(stops, Layout(cores=2), rate=30.0, minutes=0.5)
    assert [s.doubled for s in steps] == ["role", "role", "role", None]
    assert steps[-1].layout.parts == {"client": 1, "role": 8}
    assert steps[-1].simulated.used["role"] < FULL
    assert (steps[-1].layout.cores, steps[-1].layout.stores) == (2, 1)


def test_writes_are_timed_where_they_happen(tmp_path: Path) -> None:
    """Each transaction is a turn; work done in one counts as time in which nobody else can write."""
    end = clock_writes(tmp_path / "totals.npy")
    try:
        store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
        before = totals(tmp_path / "totals.npy")
        for number in range(5):
            store.write(lambda c, n=number: (_busy(0.02), marks.put(c, "place", str(n))))
        found = totals(tmp_path / "totals.npy") - before
        store.close()
    finally:
        end()
    assert found[TURNS] == 5
    assert 0.1 < found[HELD_S] < 0.5


def _busy(cpu_s: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < cpu_s:
        pass


def test_nothing_is_kept_of_what_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """``--quick --write`` is refused before anything runs."""
    assert main(["--quick", "--write"]) == 2
    assert "--quick measures nothing" in capsys.readouterr().err


def test_the_page_tells_what_was_measured() -> None:
    """docs/scaling.md holds what is written from docs/capacity.json, and nothing was changed by hand."""
    figures = json.loads(KEPT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, fragment(figures)) == page
    assert fragment(figures) in page
