"""A real TensorBoard, looked at with a real browser: what a researcher opens is there and drawn."""

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.image import imread
from playwright.sync_api import Browser, Page, expect

from telemetry.tensorboard import TensorBoardLog
from tests.conftest import WaitUntil
from tests.telemetry.samples import EVALUATION, episode, iteration

pytestmark = pytest.mark.slow
SHOWN_MS = 30_000
"""TensorBoard fetches what it draws one by one; far more than that takes on a busy machine (ms)."""


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of thirty iterations leaves."""
    directory = tmp_path_factory.mktemp("run") / "tensorboard"
    log = TensorBoardLog(directory, baselines={"random": -45.69, "optimal": 54.98})
    for k in range(1, 31):
        log.show(iteration(k, EVALUATION if k % 10 == 0 else None))
        log.histograms({"agent/triage/reward": [-1.0, -1.0, 70.0 + k]})
        log.actions("triage", {"query_orders": 30 - k, "hand_over": k})
    log.episode("sample", episode(answer="<script>late</script>"))
    log.close({"ppo.lr": 0.001, "seed": 3}, {"final/score": 0.9624, "final/return": 51.2})
    return directory


@pytest.fixture(scope="module")
def address(logdir: Path, wait_until: WaitUntil) -> Iterator[str]:
    """TensorBoard on a free port, ended by its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1"]
    with (
        (logdir.parent / "tensorboard.log").open("wb") as said,
        subprocess.Popen([*command, "--port", str(port), "--load_fast", "false"], stdout=said, stderr=said) as server,
    ):
        try:
            wait_until(lambda: answers(f"{where}/data/runs"), "TensorBoard", within_s=90)
            yield where
        finally:
            server.terminate()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server
            return b"." in answer.read()
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_context(viewport={"width": 1366, "height": 900}).new_page()
    opened.set_default_timeout(SHOWN_MS)
    yield opened
    opened.context.close()


def coloured(picture: Path) -> float:
    """Share of a picture's pixels that are neither black, white nor grey."""
    pixels = imread(picture)[..., :3]
    return float((pixels.max(axis=2) - pixels.min(axis=2) > 0.25).mean())


def test_curves_that_belong_together_are_drawn_together(page: Page, address: str, tmp_path: Path) -> None:
    """The charts of the layout, each agent's among them, with lines in them: the picture has their colour."""
    page.goto(f"{address}/#custom_scalars")
    for title in ("Return beside the baselines", "Evaluation beside the baselines", "Entropy (nat)"):
        expect(page.get_by_text(title, exact=True).first).to_be_visible(timeout=SHOWN_MS)
    expect(page.get_by_text("Matches (4)").first).to_be_visible(timeout=SHOWN_MS)
    for agent in ("triage", "resolver"):
        expect(page.get_by_text(agent, exact=True).first).to_be_attached()
    chart = page.locator("tf-custom-scalar-multi-line-chart-card").first
    page.wait_for_timeout(1500)  # the lines are drawn in animation frames that nothing announces
    chart.screenshot(path=tmp_path / "chart.png")
    page.screenshot(path=tmp_path / "custom_scalars.png")
    assert coloured(tmp_path / "chart.png") > 0.002


def test_settings_stand_beside_the_final_figures(page: Page, address: str) -> None:
    """The table of runs: a setting, and what the run came to."""
    page.goto(f"{address}/#hparams")
    for text in ("ppo.lr", "final/score", "final/return"):
        expect(page.get_by_text(text, exact=True).first).to_be_visible(timeout=SHOWN_MS)
    expect(page.get_by_text("0.96240").first).to_be_visible(timeout=SHOWN_MS)


def test_an_episode_can_be_read(page: Page, address: str) -> None:
    """A sampled episode as text: what a tool said is text, not markup."""
    page.goto(f"{address}/#text")
    words = page.get_by_text('triage, turn 0: query_orders(region="EU")')
    expect(words.first).to_be_visible(timeout=SHOWN_MS)
    expect(page.get_by_text("<script>late</script>").first).to_be_visible()
    expect(page.get_by_text("0: query_orders").first).to_be_attached()


def test_rewards_and_actions_are_histograms(page: Page, address: str) -> None:
    """Each agent's distribution of rewards and of the calls it makes, over time."""
    page.goto(f"{address}/#histograms")
    for tag in ("agent/triage/reward", "agent/triage/action"):
        expect(page.get_by_text(tag, exact=False).first).to_be_attached(timeout=SHOWN_MS)
