"""No panel stays empty: each question is put to a real Prometheus while training figures and a live team are read."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from assembly.stage_live import Place, Stage, agent_specs
from assembly.versions import load_version
from assembly.watching import watch_agent, watched_stage
from runtime.actor.attendant import Attendant
from runtime.records import AgentStarted
from runtime.store import history
from telemetry.dashboards.boards import BUS, CHAINS, COST, TRAINING, Ask, Panel
from telemetry.metrics.port import MetricsPort
from telemetry.metrics.training import feed
from telemetry.watched import Watched
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version
from tests.telemetry.prometheus import prometheus
from tests.telemetry.samples import EVALUATION, iteration
from tests.telemetry.test_live_metrics import TEAM, session

WITHIN_S = 60.0
"""A rate wants two scrapes with something between them."""


def asked() -> Iterator[tuple[str, Ask]]:
    panels: list[tuple[str, Panel]] = [(b.title, p) for b in (TRAINING, CHAINS, BUS, COST) for p in b.panels]
    for board, panel in panels:
        if panel.kind != "traces":
            yield from ((f"{board}: {panel.title}", ask) for ask in panel.asks)


def concrete(expr: str) -> str:
    return expr.replace("$__rate_interval", "20s").replace("$agent", ".*")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_panel_is_empty(tmp_path: Path, wait_until: WaitUntil) -> None:
    """Training's, chains', the bus' and cost's; a model stands in a second team's records, since none is asked here."""
    version = tmp_path / "version"
    fresh_version(version)
    place, loaded = Place.under(tmp_path / "live"), load_version(version)
    watched = Watched(targets=tmp_path / "targets", port=0)
    generate = loaded.team.generate
    assert generate is not None
    with ExitStack() as closing:
        trainer = closing.enter_context(MetricsPort(0, "trainer", tmp_path / "trainer"))
        stage = closing.enter_context(Stage(place, loaded))
        store = stage.bus.store
        assert store is not None
        closing.enter_context(watched_stage(store, watched, stage.bus.stats))
        for spec in agent_specs(place, version, loaded).values():
            closing.callback(Attendant(spec, spec.bus).stop)
        other = Watched(targets=tmp_path / "agent")
        closing.callback(watch_agent(other, "triage", loaded).close)
        at = [watched.targets, tmp_path / "trainer", other.targets]
        seen = closing.enter_context(prometheus(tmp_path / "prometheus", at))
        left, round_ = list(asked()), 0

        def shown() -> bool:
            nonlocal left, round_
            round_ += 1
            feed(trainer.meters, iteration(round_, EVALUATION), [("triage", 3.0)])
            list(stage.run([generate("eval", 2, 20 * round_ + k) for k in range(20)]))
            again = AgentStarted(correlation_id="a", at=1.0, agent="clerk", epoch=round_, pid=1, cold_start_ms=1.0)
            rows = [(r, "e") for r in [*session(f"s{round_}"), again]]
            store.write(lambda c: history.add(c, TEAM, rows))
            left = [(name, a) for name, a in left if not seen.series(concrete(a.expr))]
            return not left

        try:
            wait_until(shown, "every panel to show something", WITHIN_S)
        except pytest.fail.Exception:
            pytest.fail("empty: " + "; ".join(f"{name}: {a.expr}" for name, a in left))
