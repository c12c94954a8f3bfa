"""A mistake in one agent's loss is found where docs/find-the-fault.md says: by the panels' own questions and report.

With ``REPERTORY_PICTURES=FOLDER`` the page's pictures are written there.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from telemetry.dashboards.boards import TRAINING
from telemetry.metrics_file import read_metrics
from telemetry.records_file import episode_files, number_of, read_episode
from telemetry.run_dir import METRICS, RECORDS
from telemetry.scalars import IterationReport
from tests.conftest import WaitUntil
from tests.deploy.test_tutorial import FILES
from tests.telemetry.drawn import draw
from tests.telemetry.prometheus import prometheus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.xdist_group("ray")]
PAGE = (Path(__file__).parents[2] / "docs" / "find-the-fault.md").read_text(encoding="utf-8")
PLANTED, FAULTY, OTHER = 30, "clerk", "packer"
"""From which iteration on, in whose loss; and who is innocent."""
SHOWN = (
    "Return and held-out return", "Reward of a decision", "KL divergence of an update (nat)", "Clipped decisions",
    "Entropy (nat)", "Variance explained by the critic",
)  # fmt: skip
"""Panels of the training dashboard that the page shows."""
EVERY, STEP_S = "100ms", 0.1
"""How often Prometheus reads the port, and is asked about (s): an iteration may take a third of a second."""


@dataclass(frozen=True)
class Seen:
    """What is left of the run, and what Prometheus had of it."""

    directory: Path
    series: Mapping[str, list[dict[str, Any]]]
    """Each shown panel's answers over time."""
    iteration: Mapping[float, int]
    """Which iteration it was, by moment (Unix time, s)."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, wait_until: WaitUntil) -> Iterator[Seen]:
    """The page's commands, word for word, with a Prometheus that reads the run's port."""
    folder = tmp_path_factory.mktemp("desk")
    program = re.search(r"`faulty.py`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    commands = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert program
    assert commands
    for name, text in [*FILES, ("faulty.py", program[1])]:
        (folder / name).write_text(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("w") as log:
        run = subprocess.Popen(
            ["bash", "-c", f"{commands[1].rstrip()} --set telemetry.port=0"], cwd=folder,
            env={**os.environ, "PATH": path}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until(lambda: list(folder.glob("runs/*/*/targets/*.json")) or run.poll(), "the run's port", 300)
        (targets,) = folder.glob("runs/*/*/targets")
        began = time.time()
        with prometheus(folder / "prometheus", [targets], EVERY) as server:
            assert run.wait(timeout=900) == 0, (folder / "log").read_text()
            asks = {p.title: [a.expr.replace("$agent", ".*") for a in p.asks] for p in TRAINING.panels}
            series = {t: [s for a in asks[t] for s in server.over_time(a, began, time.time(), STEP_S)] for t in SHOWN}
            (counted,) = server.over_time("rl_iteration", began, time.time(), STEP_S)
        yield Seen(targets.parent, series, {float(at): int(float(n)) for at, n in counted["values"]})
    finally:
        run.terminate()
        run.wait()


def of(seen: Seen, panel: str, agent: str, first: int, last: int) -> list[float]:
    """What a panel shows of an agent between two iterations."""
    (found,) = [s for s in seen.series[panel] if s["metric"]["agent_id"] == agent]
    return [float(v) for at, v in found["values"] if first <= seen.iteration.get(float(at), 0) <= last]


def iterations(seen: Seen) -> list[IterationReport]:
    found = read_metrics(seen.directory / METRICS)
    assert [r.iteration for r in found] == list(range(1, 46))
    return found


def test_the_return_falls_and_does_not_say_why(seen: Seen) -> None:
    """Near 0.8 before, near chance after, for both agents alike."""
    returns = [r.return_mean or 0.0 for r in iterations(seen)]
    assert median(returns[20:PLANTED]) > 0.75
    assert median(returns[-5:]) < 0.6
    for agent in (FAULTY, OTHER):
        assert median(of(seen, "Reward of a decision", agent, 40, 45)) < median(
            of(seen, "Reward of a decision", agent, 20, PLANTED - 1)
        )


@pytest.mark.parametrize("panel", ["KL divergence of an update (nat)", "Clipped decisions"])
def test_the_faulty_agents_updates_part_at_once(seen: Seen, panel: str) -> None:
    """At the planted iteration the clerk's leaves its range; the packer's is what it was."""
    before, after = (15, PLANTED - 1), (PLANTED, PLANTED + 3)
    assert max(of(seen, panel, FAULTY, *after)) > 2 * max(of(seen, panel, FAULTY, *before))
    assert max(of(seen, panel, OTHER, *after)) < max(of(seen, panel, FAULTY, *after)) / 2


def test_the_first_iteration_that_is_out_of_range_is_named(seen: Seen) -> None:
    """By the metrics file, which has every iteration: the clerk's KL, within two iterations of the mistake."""
    kl = {a: [r.agents[a].kl or 0.0 for r in iterations(seen)] for a in (FAULTY, OTHER)}
    usual = max(kl[FAULTY][10 : PLANTED - 1])
    first = next(i for i, value in enumerate(kl[FAULTY], 1) if i >= 11 and value > 2 * usual)
    assert PLANTED <= first <= PLANTED + 2
    assert max(kl[FAULTY][PLANTED:]) > 10 * usual
    assert max(kl[OTHER][PLANTED:]) < 2 * max(kl[OTHER][10 : PLANTED - 1]), "the packer's stays where it was"


def test_the_faulty_agents_critic_has_nothing_left_to_foretell(seen: Seen) -> None:
    """The clerk's explained variance falls to nothing."""
    panel = "Variance explained by the critic"
    assert median(of(seen, panel, FAULTY, 15, PLANTED - 1)) > 0.2
    assert abs(median(of(seen, panel, FAULTY, 40, 45))) < 0.05


def test_no_alarm_goes_off(seen: Seen) -> None:
    """The run ends as any other, and no reward left the range of the alert rules: somebody has to look."""
    assert json.loads((seen.directory / "result.json").read_text())["status"] == "done"
    ranges = json.loads((seen.directory / "gates.json").read_text())["ranges"]
    for agent in (FAULTY, OTHER):
        lowest, highest = ranges[agent]
        assert all(lowest <= v <= highest for v in of(seen, "Reward of a decision", agent, 1, 45))


def test_the_faulty_agent_ends_at_a_coin(seen: Seen) -> None:
    """Entropy: the clerk's is ln 2 within five iterations, the packer's follows less far."""
    assert max(r.agents[FAULTY].entropy or 0.0 for r in iterations(seen)[PLANTED : PLANTED + 5]) > 0.68
    entropy = {a: median(of(seen, "Entropy (nat)", a, 40, 45)) for a in (FAULTY, OTHER)}
    assert entropy[FAULTY] == pytest.approx(0.693, abs=0.02)
    assert entropy[OTHER] < entropy[FAULTY] - 0.1
    assert median(of(seen, "Entropy (nat)", FAULTY, 20, PLANTED - 1)) < 0.45


def test_sampled_decisions_show_it(seen: Seen) -> None:
    """Told how heavy the parcel is, the clerk was sure before, and is not after."""
    sure: dict[bool, list[float]] = {False: [], True: []}
    for path in episode_files(seen.directory / RECORDS):
        number = int(path.stem) // number_of(1)
        records = [r for r in read_episode(path) if getattr(r, "agent", "") == FAULTY]
        if number < 6 or PLANTED - 1 <= number <= PLANTED + 3 or "grams" not in records[0].text:
            continue
        sure[number > PLANTED] += [max(r.probabilities) for r in records if r.kind == "decided" and r.probabilities]
    assert min(map(len, sure.values())) > 0
    assert max(sure[True]) < 0.65
    assert min(sure[False]) > 0.85


def test_the_pictures_of_the_page(seen: Seen, browser: Browser, tmp_path: Path) -> None:
    """The panels are drawn from what Prometheus had; the report shows the clerk's decision in a real browser."""
    place = Path(os.environ.get("REPERTORY_PICTURES") or tmp_path)
    panels = draw(seen.series, seen.iteration, PLANTED, place / "find-the-fault-panels.png")
    assert panels.stat().st_size > 20_000
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto((seen.directory / "report.html").as_uri())
    page.locator("#agent").select_option(FAULTY)
    page.locator("#order").select_option("worst decision")
    told = coin(page)
    page.screenshot(path=place / "find-the-fault-decision.png")
    page.close()
    assert re.search(r"Chose with probability 0\.[45]", told)


def coin(page: Page) -> str:
    """Click the clerk's decisions, the worst first, up to one that was told the weight; what is told of it."""
    for block in page.get_by_role("button", name=re.compile(f"^{FAULTY} 0, sell")).all():
        block.click()
        told = page.locator(".detail").inner_text()
        if "grams" in told:
            return told
    pytest.fail("no decision that was told the weight")
