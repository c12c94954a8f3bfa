"""The run report as data and as markup; tests/telemetry/test_report_browser.py looks at it in a browser."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.records import Decided, Observed, ToolCall
from telemetry.charts import learning_chart
from telemetry.curves import POINTS
from telemetry.durable import RecordLost
from telemetry.episode import story, story_text
from telemetry.html import script_json, tag
from telemetry.picture import curve, learning_curve_png, over_seeds
from telemetry.records_file import KEPT
from telemetry.report import write_report
from telemetry.report.__main__ import main
from telemetry.report.comparing import difference, named
from telemetry.report.reading import account_of
from telemetry.report.timeline import DECISIONS, EPISODES, LINES, OPTIONS, TEXT, drawn
from telemetry.run_dir import Run, read_run
from telemetry.scalars import RESULT
from tests.telemetry.samples import EVALUATION, QUICK, episode, iteration, refused, result, write_run

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """What a browser would make of a page: elements, the text outside scripts, and the data inside them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside: tuple[str, dict[str, str | None]] = ("", {})
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.charts: list[Any] = []
        self.labels: list[str] = []
        self.episodes: Any = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = (tag, dict(attrs))
        self.opened.append(self.inside)
        if dict(attrs).get("role") == "img":
            self.labels.append(dict(attrs)["aria-label"] or "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ("", {})

    def handle_data(self, data: str) -> None:
        last, attributes = self.inside
        if last == "script" and attributes.get("id") == "episodes":
            self.episodes = json.loads(data)
        elif last == "script" and attributes.get("type") == "application/json":
            self.charts.append(json.loads(data))
        elif last not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page(run_dir: Path) -> Page:
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


def test_a_report_shows_the_result_and_the_curves(tmp_path: Path) -> None:
    """One page holds the figures, and the charts with their baselines and intervals."""
    shown = page(write_run(tmp_path / "supply_chain" / "1"))
    for part in ("0.962", "[50.10, 52.30]", "91.0%", "10,000", "9f2c51d0aa7e4b1c"):
        assert part in shown.text
    assert "seed: 3" in shown.text
    result, learning = shown.charts[:2]
    assert result["data"][0]["y"] == ["random", "expert", "this team", "optimal"]
    assert result["data"][1]["y"] == ["random", "this team"]
    assert result["data"][1]["error_x"]["array"] == pytest.approx([1.39, 1.1])
    assert learning["data"][0]["x"] == [12000 * k for k in range(1, 11)]
    assert [note["text"] for note in learning["layout"]["annotations"]][-1] == "optimal 54.98"


def test_each_agents_terms_are_there_raw_and_smoothed(tmp_path: Path) -> None:
    """A chart an agent: what it is paid in all and by each term, each raw, as windowed mean and as moving average."""
    shown = page(write_run(tmp_path / "run"))
    terms = next(chart for chart, label in zip(shown.charts, shown.labels, strict=True) if "triage: reward" in label)
    lines = {(trace["name"], trace["meta"]): trace["y"] for trace in terms["data"]}
    assert {name for name, _ in lines} == {"in all", "payoff", "tool_cost"}
    assert lines["payoff", "raw"] == [2.0 * k for k in range(1, 11)]
    assert lines["payoff", "windowed"][-1] == pytest.approx(11.0)
    assert 2.0 < lines["payoff", "smoothed"][-1] < 20.0


def test_every_decision_of_an_episode_is_on_the_page(tmp_path: Path) -> None:
    """What was seen, could have been called, was called, answered, sent and paid: all of it is in the page's data."""
    told = page(write_run(tmp_path / "run")).episodes
    texts = told["texts"]
    (shown,) = told["episodes"]
    first, last = shown["decisions"]
    assert [told["agents"][d["agent"]] for d in (first, last)] == ["triage", "resolver"]
    assert [texts[k] for k in first["saw"]] == ["case: order 4711 is overdue", "region: EU"]
    assert [[texts[c], p, legal, chosen] for c, p, legal, chosen in first["options"]] == [
        ['query_orders(region="EU")', None, True, True]
    ]
    assert (first["p"], first["usd"], first["ms"]) == (pytest.approx(0.606531), 0.5, 1000.0)
    assert texts[first["got"][0][0]] == '{"status": "late"}'
    assert texts[first["sent"][0]] == 'to resolver: {"note": "overdue"}'
    assert [(texts[term], value) for term, value, *_ in last["pay"]] == [("payoff", 70.0), ("tone", None)]
    assert texts[last["pay"][1][3]] == "judge timed out"
    assert (last["failed"], last["missing"]) == (True, True)
    assert shown["paid"] == 69.5


def test_rewards_are_shown_in_the_standard_deviations_of_the_export(tmp_path: Path) -> None:
    """Raw and standardized stand side by side; an agent without statistics of its own has none."""
    run = write_run(tmp_path / "run")
    (run / "version").mkdir()
    keys = {"triage": {"count": 9, "mean": 0.5, "variance": 4.0}}
    (run / "version" / "standardizer.json").write_text(json.dumps({"center": True, "clip": 10.0, "keys": keys}))
    first, last = page(run).episodes["episodes"][0]["decisions"]
    assert (first["paid"], first["z"]) == (-0.5, -0.5)
    assert [z for _, _, z, *_ in first["pay"]] == [-0.25]
    assert last["z"] is None
    assert [z for _, _, z, *_ in last["pay"]] == [None, None]


def test_a_report_loads_nothing_and_runs_only_its_own_scripts(tmp_path: Path) -> None:
    """Nothing on the page names a place elsewhere, and the page's policy allows no request."""
    shown = page(write_run(tmp_path / "run"))
    places = [attributes.get("src") or attributes.get("href") or "#" for _, attributes in shown.opened]
    assert all(place.startswith("#") for place in places)
    (policy,) = [a["content"] for t, a in shown.opened if t == "meta" and "http-equiv" in a]
    assert policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in policy
    assert "unsafe" not in policy.partition("style-src")[0]


def test_what_agents_and_tools_say_never_becomes_markup(tmp_path: Path) -> None:
    """A script planted in a tool's answer, in an observation and in an agent's name is data like any other."""
    run = write_run(tmp_path / "run", episodes=[episode(answer=EVIL, agent=EVIL, saw=EVIL)])
    clean = [t for t, _ in page(write_run(tmp_path / "clean")).opened]
    shown = page(run)
    assert [t for t, _ in shown.opened] == clean
    assert EVIL in shown.episodes["texts"]
    assert EVIL in shown.episodes["agents"]


def test_a_page_holds_no_more_than_a_browser_can_take(tmp_path: Path) -> None:
    """Of many episodes the latest are shown, huge texts are cut, and the page says what is missing."""
    huge = [episode(answer="x" * 50_000, saw="\n".join(f"line {k}" for k in range(1000)))]
    run = write_run(tmp_path / "run", iterations=1, episodes=huge + [episode()] * EPISODES)
    files = sorted((run / "records").glob("*.jsonl"))
    assert len(files) == KEPT
    files[-1].with_stem("999999").write_text(files[-1].read_text())
    shown = page(run).episodes
    assert len(shown["episodes"]) == EPISODES
    assert shown["episodes"][0]["id"] == "999999"
    assert "1 older episodes are not on this page" in shown["notes"][0]
    (one,) = page(write_run(tmp_path / "one", iterations=1, episodes=huge)).episodes["episodes"]
    assert one["decisions"][0]["unseen"] == 1000 - LINES
    cut = page(tmp_path / "one").episodes
    assert max(map(len, cut["texts"])) < TEXT + 50
    assert any("characters left out" in text for text in cut["texts"])
    assert "1 texts of more than" in cut["notes"][0]


def test_long_episodes_and_wide_choices_are_bounded() -> None:
    """The first decisions, and the likeliest calls with the one that was chosen."""
    calls = tuple(ToolCall(tool="pick", args={"n": k}) for k in range(100))
    of: dict[str, Any] = {"correlation_id": "s", "at": 0.0, "agent": "triage"}
    told = story(
        [
            r
            for turn in range(DECISIONS + 5)
            for r in (
                Observed(**of, turn=turn, text="", candidates=calls, mask=(True,) * 100),
                Decided(**of, turn=turn, call=calls[99], probabilities=tuple(k / 4950 for k in range(99, -1, -1))),
            )
        ]
    )
    shown = drawn([(7, told)], [], None, 1)
    (one,) = shown["episodes"]
    assert (len(one["decisions"]), one["left"]) == (DECISIONS, 5)
    options = one["decisions"][0]["options"]
    assert len(options) == OPTIONS + 1
    assert one["decisions"][0]["others"] == 100 - len(options)
    assert [shown["texts"][o[0]] for o in options if o[3]] == ["pick(n=99)"]
    assert "more than" in shown["notes"][-1]


def test_long_curves_are_thinned_without_losing_an_extreme(tmp_path: Path) -> None:
    """Ten thousand iterations become a few hundred points; the one that exploded is counted, and said."""
    reports = [iteration(k) for k in range(1, 10_001)]
    wild = [replace(r, return_mean=1e6 if r.iteration == 5000 else float(r.iteration % 7)) for r in reports]
    run = Run(path=tmp_path, iterations=wild, result=None, experiment="")
    chart = learning_chart({"run": run})
    assert max(len(trace["x"]) for trace in chart.data) <= POINTS
    assert max(v for v in chart.data[0]["y"] if v is not None) == 1e6
    assert chart.layout["yaxis"]["range"][1] < 100
    assert chart.notes[0].startswith("1 outlier ")
    assert "10,000 iterations" in chart.notes[1]


def test_a_run_that_has_not_ended_has_a_report_too(tmp_path: Path) -> None:
    """A killed run, before its first evaluation and without an episode, can be looked at."""
    run = write_run(tmp_path / "run", iterations=2)
    for path in (run / "result.json", run / "experiment.yaml", run / "records" / "000000.jsonl"):
        path.unlink()
    shown = page(run)
    assert "not ended" in shown.text
    assert "iteration 2 is the last on record" in shown.text
    assert "Nothing was recorded." in shown.text
    assert "No episode was sampled." in shown.text


def test_a_run_that_was_refused_has_a_report_too(tmp_path: Path) -> None:
    """Nothing was trained: the page shows what the audit found, with evidence and remedy, and which gate is closed."""
    run = tmp_path / "run"
    refused(run)
    shown = page(run)
    for part in (
        "The reward audit found an error.",
        "the reward pays everybody",
        "pay for success only",
        "term payoff",
        "share 0.99",
        "saw this",
        "a known thing",
        "accepted for now",
        "resolver: mean time of a step",
        "closed",
        "< 200 ms",
        "No episode was sampled.",
    ):
        assert part in shown.text
    assert "gates.json" not in shown.text


def test_broken_parts_are_said_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Torn lines, foreign files and half a result do not keep the rest from being shown."""
    run = write_run(tmp_path / "run", iterations=3, episodes=[episode(), episode()])
    (run / "result.json").write_text('{"status": ')
    (run / "audit.json").write_text("[]")
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"foreign": 1}\n{"iteration": 4, "env_st')
    (run / "records" / "000001.jsonl").write_text('{"kind": "foreign"}\n')
    (run / "records" / "notes.txt").write_text("mine")
    (run / "records" / "000002.jsonl").write_bytes(b"\xff\xfe\n")
    assert main([str(run)]) == 0
    said = capsys.readouterr().err
    for part in ("result.json cannot be read", "audit.json cannot be read", "line 4 is no iteration", "is torn"):
        assert part in said
    for part in ("000001.jsonl cannot be read", "000002.jsonl cannot be read", "no gates.json"):
        assert part in said
    shown = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "is torn" in shown.text
    assert len(shown.episodes["episodes"]) == 1
    assert shown.charts[1]["data"][0]["x"] == [12000, 24000, 36000]


def test_several_runs_are_compared_over_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One page: both curves, results with the difference and its interval, settings that differ, audits."""
    runs = [write_run(tmp_path / "a" / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    better = replace(EVALUATION, return_mean=54.2, return_ci95=(53.1, 55.3))
    (runs[1] / "result.json").write_bytes(RESULT.dump_json(replace(result(runs[1]), eval=better)))
    (runs[1] / "experiment.yaml").write_text("name: supply_chain\nseed: 4\nppo: {lr: 0.1}\n")
    refused(tmp_path / "a" / "three")
    out = tmp_path / "both.html"
    assert main([*map(str, runs), str(tmp_path / "a" / "three"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    shown = Page(out.read_text(encoding="utf-8"))
    names = [trace["name"] for trace in shown.charts[0]["data"] if trace.get("meta") == "smoothed"]
    assert names == ["a/one", "a/two", "a/three"]
    assert "+3.00 [1.44, 4.56]" in shown.text
    for part in ("ppo.lr", "(not set)", "0.1", "seed", "the reward pays everybody", "there is no metrics.jsonl"):
        assert part in shown.text


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Names are as short as they can be, and no two runs have the same."""
    accounts = [account_of(write_run(tmp_path / place / "supply_chain" / "1")) for place in ("a", "b")]
    assert list(named(accounts)) == ["a/supply_chain/1", "b/supply_chain/1"]


@pytest.mark.parametrize(
    ("low", "high", "spans"), [(50.1, 52.3, True), (51.9, 54.1, False)], ids=["the same", "more than both errors"]
)
def test_a_difference_has_the_interval_of_two_independent_means(low: float, high: float, spans: bool) -> None:
    """Half widths add by their squares; 1.8 is more than √2 times 1.1."""
    other = replace(EVALUATION, return_mean=(low + high) / 2, return_ci95=(low, high))
    text = difference(other, EVALUATION)
    ends = [float(part) for part in text.partition("[")[2].rstrip("]").split(", ")]
    assert ends[1] - ends[0] == pytest.approx(2 * 1.1 * 2**0.5, abs=0.02)
    assert (ends[0] < 0 < ends[1]) == spans
    assert difference(EVALUATION, None) == "-"


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says so, writes the page of the others, and exits with 2; what cannot be written is a fault."""
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 2
    assert "not a run directory" in capsys.readouterr().err
    run, out = write_run(tmp_path / "run"), tmp_path / "page.html"
    assert main([str(run), str(tmp_path / "empty"), "--out", str(out)]) == 2
    assert "Comparison of 1 run<" in out.read_text(encoding="utf-8")
    (tmp_path / "file").touch()
    assert main([str(run), "--out", str(tmp_path / "file" / "page.html")]) == 1
    with pytest.raises(RecordLost, match="not a run"):
        write_report(tmp_path / "empty")


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
