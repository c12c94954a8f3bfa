import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.durable import RecordLost
from telemetry.episode import story, story_text
from telemetry.html import script_json, tag
from telemetry.picture import curve, learning_curve_png, over_seeds
from telemetry.report import EPISODES, main, write_report
from telemetry.run_dir import read_run
from tests.telemetry.samples import QUICK, episode, write_run

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """What a browser would make of a page: elements, the text outside scripts, and the charts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.charts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        last, attributes = self.opened[-1] if self.opened else ("", {})
        if last == "script" and attributes.get("class") == "chart":
            self.charts.append(data)
        elif last not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page(run_dir: Path) -> Page:
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


def test_a_report_shows_the_result_the_curves_and_the_decisions(tmp_path: Path) -> None:
    """One page holds the figures, a chart a figure, and each decision with what was seen, called, got and paid."""
    shown = page(write_run(tmp_path / "supply_chain" / "1"))
    for part in ("0.962", "[50.10, 52.30]", "91.0%", 'query_orders(region="EU")', '{"status": "late"}', "+70.00"):
        assert part in shown.text
    assert "tone missing (judge timed out)" in shown.text
    assert "seed: 3" in shown.text
    charts = [json.loads(chart) for chart in shown.charts]
    result, learning = charts[:2]
    assert result["data"][0]["y"] == ["random", "expert", "this team", "optimal"]
    assert result["data"][0]["error_x"]["array"][2] == pytest.approx(1.1)
    assert learning["data"][0]["x"] == [12000 * k for k in range(1, 11)]
    assert [note["text"] for note in learning["layout"]["annotations"]][-1] == "optimal 54.98"


def test_a_report_needs_no_network(tmp_path: Path) -> None:
    """Nothing on the page is loaded from elsewhere."""
    shown = page(write_run(tmp_path / "run"))
    assert not [t for t, attributes in shown.opened if "src" in attributes or "href" in attributes]


def test_what_agents_and_tools_say_never_becomes_markup(tmp_path: Path) -> None:
    """A script planted in a tool's answer and in an agent's name is shown as text."""
    run = write_run(tmp_path / "run", episodes=[episode(answer=EVIL, agent=EVIL)])
    clean = [t for t, _ in page(write_run(tmp_path / "clean")).opened]
    shown = page(run)
    assert [t for t, _ in shown.opened] == clean
    assert EVIL in shown.text


def test_only_the_latest_episodes_are_on_the_page(tmp_path: Path) -> None:
    """The page stays readable however long a run was."""
    shown = page(write_run(tmp_path / "run", iterations=1, episodes=[episode()] * (EPISODES + 5)))
    assert len(re.findall(r"0000\d\d · case-7", shown.text)) == EPISODES


def test_a_run_that_has_not_ended_has_a_report_too(tmp_path: Path) -> None:
    """A killed run, before its first evaluation and without an episode, can be looked at."""
    run = write_run(tmp_path / "run", iterations=2)
    for path in (run / "result.json", run / "experiment.yaml", run / "records" / "000000.jsonl"):
        path.unlink()
    shown = page(run)
    assert "not ended" in shown.text
    assert "Nothing was recorded." in shown.text
    assert "None were sampled." in shown.text


def test_several_runs_are_compared_over_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes one page with both curves and both results, and says where."""
    runs = [write_run(tmp_path / "a" / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    out = tmp_path / "both.html"
    assert main([*map(str, runs), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    shown = Page(out.read_text(encoding="utf-8"))
    names = [trace["name"] for trace in json.loads(shown.charts[0])["data"]]
    assert [name for name in names if "smoothed" in name] == ["a/one, smoothed", "a/two, smoothed"]


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what is missing, in one line, and exits with 2."""
    assert main([str(tmp_path)]) == 2
    assert "no metrics.jsonl" in capsys.readouterr().err
    (tmp_path / "metrics.jsonl").touch()
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(RecordLost, match="result"):
        read_run(tmp_path)


@QUICK
@given(st.text())
def test_text_in_a_tag_is_text(text: str) -> None:
    """Whatever stands in an element or in a script's JSON cannot leave it."""
    assert not set("<>") & set(tag("b", text).removeprefix("<b>").removesuffix("</b>"))
    assert not set("<>&") & set(script_json(text))
    assert json.loads(script_json(text)) == text


def test_an_episode_reads_as_a_list_of_decisions() -> None:
    """Records are gathered by decision: return, end, faults and probabilities are those of the records."""
    told = story(episode())
    assert told.title == "case-7: return +69.50, success, 2 decisions"
    assert [(d.agent, d.failed, d.cost_usd) for d in told.decisions] == [
        ("triage", False, 0.5),
        ("resolver", True, 0.0),
    ]
    assert told.decisions[0].probability == pytest.approx(np.exp(-0.5))
    assert "over_budget at $.region: no calls left" in story_text(told)
    assert story(episode()[:3]).end == "unfinished"


def test_the_picture_is_drawn_over_what_all_seeds_cover(tmp_path: Path) -> None:
    """Seeds of different lengths are averaged where all of them have points; the picture is a PNG."""
    runs = [write_run(tmp_path / str(k), iterations=k) for k in (10, 7)]
    steps, returns = over_seeds([curve(read_run(run)) for run in runs])
    assert (steps[0], steps[-1]) == (12000, 84000)
    assert returns.shape == (2, len(steps))
    assert returns[0] == pytest.approx(returns[1])
    path = learning_curve_png(runs, tmp_path / "docs" / "curve.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_runs_that_cannot_be_averaged_are_refused() -> None:
    """Curves that do not overlap, or are empty, are not drawn as if they did."""
    early, late = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[2.0, 3.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="share no stretch"):
        over_seeds([early, late])
    with pytest.raises(ValueError, match="no learning curve"):
        over_seeds([early, np.empty((2, 0))])


@QUICK
@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20))
def test_a_shared_curve_goes_through_both_ends(values: list[float]) -> None:
    """Interpolation invents nothing beyond the points it was given."""
    points = np.array([np.arange(len(values)), values])
    steps, returns = over_seeds([points])
    assert (steps[0], steps[-1]) == (0, len(values) - 1)
    assert (returns[0, 0], returns[0, -1]) == pytest.approx((values[0], values[-1]))
    assert min(values) - 1e-9 <= returns.min() <= returns.max() <= max(values) + 1e-9
