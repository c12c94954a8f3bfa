"""The run report in a real browser: read, clicked through, used by keyboard alone, and never phoning anywhere."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from runtime.records import AnyRecord, Decided, EpisodeEnded, EpisodeOpened, ModelCalled, Observed, Rewarded, ToolCall
from telemetry.report import write_comparison, write_report
from telemetry.scalars import ITERATION
from tests.telemetry.samples import episode, iteration, refused, write_run

pytestmark = pytest.mark.slow
EVIL = "</script><script>window.stolen = 1</script><img src='http://127.0.0.1:9/x' onerror='window.stolen = 1'>"
READY = "document.documentElement.dataset.charts"
READY_MS = 20_000
"""Far more than unpacking the charts takes, on a machine that is busy with something else (ms)."""
CLICK_MS = 1000
"""What a click may take on the largest page (ms); a reader begins to wait at a tenth of it."""


def chain(name: str, paid: float, slow: float = 0.1, success: bool = True) -> list[AnyRecord]:
    """Two agents: one asks a model and chooses among three calls, the other ends the case."""
    calls = tuple(ToolCall(tool="ask", args={"whom": whom}) for whom in ("port", "customs", "carrier"))
    of: dict[str, Any] = {"correlation_id": name, "agent": "triage", "turn": 0}
    last: dict[str, Any] = {**of, "agent": "resolver", "at": 1.0 + slow}
    return [
        EpisodeOpened(correlation_id=name, at=1.0, team="supply_chain", scenario=name, seed=1),
        ModelCalled(**of, at=1.0, tokens_in=120, tokens_out=7, ms=40, model="local/tiny", cost_usd=0.01),
        Observed(**of, at=1.0 + slow / 2, text="case 7", candidates=calls, mask=(True, True, False)),
        Decided(**of, at=1.0 + slow / 2, call=calls[1], logp=-0.5, probabilities=(0.4, 0.6, 0.0)),
        Rewarded(**of, at=1.0 + slow / 2, term="tool_cost", value=-1.0, standardized=-0.25),
        Observed(**last, text="case 7\nport: closed"),
        Decided(**last, call=ToolCall(tool="resolve", args={"remedy": "reroute"})),
        Rewarded(**last, term="payoff", value=paid, scope="team"),
        EpisodeEnded(correlation_id=name, at=2.0, outcome={"remedy": "reroute"}, success=success),
    ]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a laptop's size, without a network; what goes wrong on it fails the test."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, offline=True)
    opened, wrong = context.new_page(), list[str]()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text))
    opened.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
    yield opened
    context.close()
    assert not wrong


def show(page: Page, path: Path, *, charts: bool = False) -> Page:
    """Open a report; its charts are ready some time after the rest."""
    page.goto(path.as_uri())
    if charts:
        page.wait_for_function(READY, timeout=READY_MS)
    return page


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> Page:
    """The report of a run with four episodes: the newest is an ordinary one, one has errors, one failed slowly."""
    told = [episode(), chain("good", 70.0), chain("bad", -60.0, slow=3.0, success=False), chain("plain", 10.0)]
    return show(page, write_report(write_run(tmp_path / "run", episodes=told)))


def detail(page: Page) -> str:
    return page.locator(".detail").inner_text()


def titles(page: Page) -> list[str]:
    return page.locator(".episode h3").all_text_contents()


def test_a_click_on_a_block_tells_the_whole_decision(shown: Page) -> None:
    """Observation, candidates with probabilities, chosen call, rewards raw and standardized, tokens and cost."""
    shown.get_by_role("button", name=re.compile(r"^triage 0, ask")).first.click()
    told = detail(shown)
    for part in ("triage, turn 0", "case 7", "Chose with probability 0.607", 'ask(whom="customs")', "0.600", "0.400"):
        assert part in told
    for part in ("not legal", "tool_cost", "−1", "−0.25", "120 tokens in, 7 out", "0.01 USD", "local/tiny, 40 ms"):
        assert part in told
    shown.get_by_role("button", name="Next decision").click()
    expect(shown.locator(".detail h3")).to_have_text("resolver, turn 0")
    assert "port: closed" in detail(shown)
    assert "+10" in detail(shown)


def test_answers_and_coercions_are_shown(page: Page, tmp_path: Path) -> None:
    """What the tool said before it was made to fit stands beside what the agent saw."""
    told = [r.model_copy(update={"raw": "LATE!"}) if r.kind == "tool_answered" and r.ok else r for r in episode()]
    show(page, write_report(write_run(tmp_path / "run", episodes=[told])))
    assert '{"status": "late"}' in detail(page)
    assert "BEFORE COERCION\n" in detail(page).upper()
    assert '"LATE!"' in detail(page)
    page.get_by_role("button", name=re.compile("^resolver 0")).click()
    assert "over_budget at $.region: no calls left" in detail(page)
    assert "judge timed out" in detail(page)


def test_the_keyboard_alone_is_enough(shown: Page) -> None:
    """One stop for Tab, arrows along decisions and episodes, Enter reads, Escape goes back to the block."""
    assert shown.locator(".block[tabindex='0']").count() == 1
    shown.locator("#width").focus()
    shown.keyboard.press("Tab")
    focused = shown.locator(":focus")
    assert (focused.get_attribute("aria-label") or "").startswith("triage 0")
    shown.keyboard.press("ArrowRight")
    expect(shown.locator(".detail h3")).to_have_text("resolver, turn 0")
    shown.keyboard.press("ArrowDown")
    expect(shown.locator(".episode.now h3")).to_have_text("bad")
    shown.keyboard.press("Home")
    shown.keyboard.press("Enter")
    expect(shown.locator(".detail")).to_be_focused()
    assert "triage, turn 0" in detail(shown)
    shown.keyboard.press("Escape")
    expect(shown.locator(".block:focus")).to_have_count(1)


def test_episodes_are_filtered_and_ordered(shown: Page) -> None:
    """By agent, errors, failures, worst reward and slowest decision."""
    assert titles(shown) == ["plain", "bad", "good", "case-7"]
    shown.locator("#order").select_option("worst return")
    assert titles(shown)[0] == "bad"
    shown.locator("#order").select_option("slowest decision")
    assert titles(shown)[0] == "bad"
    shown.locator("#show").select_option("errors only")
    assert titles(shown) == ["case-7"]
    shown.locator("#agent").select_option("triage")
    expect(shown.get_by_text("No episode is like that.")).to_be_visible()
    shown.locator("#show").select_option("not successful")
    assert titles(shown) == ["bad"]
    assert shown.locator(".who").all_text_contents() == ["triage"]
    expect(shown.get_by_role("status")).to_have_text("1 of 4 episodes")


def test_blocks_are_coloured_by_reward_or_by_duration(shown: Page) -> None:
    """The colour follows the switch, and the legend names its ends; widths can follow the clock."""
    block = shown.get_by_role("button", name=re.compile(r"^resolver 0, resolve.*−60")).first
    loss = block.evaluate("b => b.style.backgroundColor")
    assert "−70" in shown.locator(".filters .legend").inner_text()
    shown.locator("#colour").select_option("by duration")
    assert block.evaluate("b => b.style.backgroundColor") != loss
    assert "0 ms" in shown.locator(".filters .legend").inner_text()
    shown.locator("#width").select_option("by duration")
    widths = shown.locator("[aria-label^='Episode bad'] .block").evaluate_all("b => b.map((x) => x.clientWidth)")
    assert min(widths) >= 0
    assert max(widths) > 100


def test_curves_are_drawn_and_switched(shown: Page) -> None:
    """Each chart is drawn when it comes near; raw and smoothed lines are a choice of the reader."""
    shown.wait_for_function(READY, timeout=READY_MS)
    shown.locator("#learning").scroll_into_view_if_needed()
    lines = shown.locator("#learning .scatterlayer .trace")
    expect(lines).to_have_count(3)
    shown.locator("#smoothing").select_option("raw only")
    expect(lines).to_have_count(2)
    shown.locator("#policies").scroll_into_view_if_needed()
    expect(shown.locator("#policies .scatterlayer").first).to_be_attached()


def test_what_agents_wrote_does_nothing(page: Page, tmp_path: Path) -> None:
    """A script in an answer, an observation and a role's name is read as text; it neither runs nor asks the network."""
    run = write_run(tmp_path / "run", episodes=[episode(answer=EVIL, agent=EVIL, saw=EVIL)])
    show(page, write_report(run))
    assert detail(page).count("window.stolen") >= 3
    assert page.evaluate("window.stolen") is None
    assert page.locator("img").count() == 0


def test_only_the_pages_own_scripts_may_run(browser: Browser, tmp_path: Path) -> None:
    """Even markup that got past us runs nothing: the page's policy forbids it."""
    opened = browser.new_context(offline=True).new_page()
    said = list[str]()
    opened.on("console", lambda message: said.append(message.text))
    show(opened, write_report(write_run(tmp_path / "run")))
    opened.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'stolen = 1'}))")
    opened.evaluate("fetch('https://example.org').catch(() => null)")
    assert opened.evaluate("window.stolen") is None
    assert len([text for text in said if "Content Security Policy" in text]) >= 2
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    """Labels, roles, contrast: axe finds nothing on a run's page, a refused run's and a comparison, light and dark."""
    told = [episode(), chain("bad", -60.0, success=False)]
    run, stopped = write_run(tmp_path / "run", episodes=told), refused(tmp_path / "stopped")
    pages = [write_report(run), write_report(stopped), write_comparison([run, stopped], tmp_path / "both.html")]
    opened = browser.new_context(color_scheme=scheme, viewport={"width": 1366, "height": 768}).new_page()
    for path in pages:
        show(opened, path, charts=path != pages[1])
        opened.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        found = Axe().run(opened, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
        assert len(found.response["passes"]) > 20
        assert not found.response["violations"], found.generate_report()
    opened.context.close()


def test_the_theme_is_the_readers(shown: Page) -> None:
    """The button changes the colours of the page, its charts and its blocks."""
    before = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.get_by_role("button", name="Dark colours").click()
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != before
    expect(shown.get_by_role("button", name="Light colours")).to_be_visible()


def test_a_large_run_stays_quick(page: Page, tmp_path: Path) -> None:
    """10,000 iterations, 500 episodes, observations of a megabyte: a click is answered at once, the rest is said."""
    huge = "\n".join(f"{k} " + "x" * 200 for k in range(5000))
    many = [chain(f"case-{k}", float(k % 90)) for k in range(499)] + [episode(saw=huge, answer=huge)]
    run = write_run(tmp_path / "run", iterations=0, episodes=many)
    with (run / "metrics.jsonl").open("wb") as file:
        for k in range(1, 10_001):
            file.write(ITERATION.dump_json(replace(iteration(k), return_mean=float(k % 97))) + b"\n")
    for path in list((run / "records").glob("*.jsonl")):
        path.with_stem(f"{int(path.stem) + 1000:06d}").write_bytes(path.read_bytes())
    report = write_report(run)
    assert report.stat().st_size < 15e6
    show(page, report, charts=True)
    assert "characters left out" in page.locator("#decisions").inner_text()
    assert "older episodes are not on this page" in page.locator("#decisions").inner_text()
    took = page.evaluate(
        "() => { const began = performance.now(); document.querySelectorAll('.block')[7].click();"
        " document.querySelector('.detail').getBoundingClientRect(); return performance.now() - began; }"
    )
    assert took < CLICK_MS
    page.get_by_role("button", name="Show 20 more").click()
    expect(page.locator(".episode")).to_have_count(40)


def test_a_comparison_shows_runs_side_by_side(page: Page, tmp_path: Path) -> None:
    """Results in a table, both curves in one chart, and what differs."""
    runs = [write_run(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    (runs[1] / "experiment.yaml").write_text("name: supply_chain\nseed: 9\n")
    show(page, write_comparison(runs, tmp_path / "both.html"), charts=True)
    assert page.locator("#result tbody tr").count() == 2
    assert "seed" in page.locator("#settings").inner_text()
    page.locator("#learning").scroll_into_view_if_needed()
    expect(page.locator("#learning .scatterlayer .trace")).to_have_count(6)
