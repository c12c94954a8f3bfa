"""A run as one page that opens offline: ``python -m telemetry.report RUN_DIR [RUN_DIR …]``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from telemetry.charts import Chart, agent_chart, learning_chart, result_chart, terms_chart, tools_chart
from telemetry.durable import RecordLost, replace_file
from telemetry.episode import Decision, EpisodeStory
from telemetry.figures import duration, interval, number
from telemetry.html import Html, join, script_json, table, tag
from telemetry.run_dir import Run, read_run
from telemetry.scalars import AgentReport, Figure

EPISODES = 20
"""Sampled episodes on the page: the latest; the rest stay in records/."""
KL, EXPLAINED = "KL to the sampling policy (nat)", "Explained variance"
EXPLODING = frozenset({KL, EXPLAINED})
"""Figures of which a few values can be so large that the rest looks flat."""
AGENT_FIGURES: dict[str, Callable[[AgentReport], Figure]] = {
    "Return per episode": lambda a: a.return_mean,
    "Entropy (nat)": lambda a: a.entropy,
    KL: lambda a: a.kl,
    EXPLAINED: lambda a: a.explained_variance,
    "Clip fraction": lambda a: a.clip_fraction,
    "Standardized reward, standard deviation": lambda a: a.reward_standardized_std,
}


def write_report(run_dir: Path) -> Path:
    """Write a run's report.html and return its path. Raises RecordLost where the directory is not a run's."""
    path = run_dir / "report.html"
    replace_file(path, _page(*_run_page(read_run(run_dir))))
    return path


def write_comparison(run_dirs: Sequence[Path], path: Path) -> Path:
    """Write one page with the runs' curves over each other and their results in a table."""
    runs = [read_run(directory) for directory in run_dirs]
    body = [
        tag("h1", "Comparison"),
        tag("section", _results(runs), class_="wide"),
        _section("Learning curves", learning_chart(runs), class_="wide"),
    ]
    replace_file(path, _page("Comparison", body))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a report for one run or a comparison of several; 2 where a directory is not a run's."""
    parser = argparse.ArgumentParser(prog="python -m telemetry.report", description=__doc__)
    parser.add_argument("run_dirs", nargs="+", type=Path, metavar="RUN_DIR")
    parser.add_argument("--out", type=Path, default=Path("comparison.html"), help="where a comparison of several goes")
    asked = parser.parse_args(arguments)
    dirs: list[Path] = asked.run_dirs
    try:
        path = write_report(dirs[0]) if len(dirs) == 1 else write_comparison(dirs, asked.out)
    except RecordLost as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{path}\n")
    return 0


def _run_page(run: Run) -> tuple[str, list[Html]]:
    body = [tag("h1", run.name), _cards(run), _section("Result beside the baselines", result_chart(run))]
    body.append(_section("Learning curve", learning_chart([run])))
    for what, figure in AGENT_FIGURES.items():
        body.append(_section(what, agent_chart(run, figure, bounded=what in EXPLODING)))
    for agent in run.agents:
        body.append(_section(f"{agent}: reward terms per episode", terms_chart(run, agent)))
        body.append(_section(f"{agent}: share of each call among its decisions", tools_chart(run, agent)))
    body += [_episodes(run), _experiment(run)]
    return run.name, body


def _cards(run: Run) -> Html:
    evaluation, result = run.evaluation, run.result
    last = run.iterations[-1] if run.iterations else None
    cards = {
        "status": result.status if result else "not ended",
        "score": number(result.score if result else evaluation.score if evaluation else None, ".3f"),
        "held-out return": number(evaluation.return_mean) if evaluation else "-",
        "95% interval": interval(evaluation.return_ci95 if evaluation else None),
        "success": number(evaluation.success_rate, ".1%") if evaluation else "-",
        "tool calls / episode": number(evaluation.tool_calls) if evaluation else "-",
        "USD / episode": number(evaluation.cost_usd) if evaluation else "-",
        "env steps": f"{last.env_steps:,}" if last else "0",
        "training time": duration(last.seconds if last else None),
        "seed": str(result.seed) if result else "-",
        "version": result.version[:8] or "-" if result else "-",
    }
    boxes = (tag("div", tag("b", value), tag("span", name), class_="card") for name, value in cards.items())
    return tag("div", *boxes, class_="cards")


def _results(runs: Sequence[Run]) -> Html:
    rows: list[list[str]] = []
    for run in runs:
        evaluation, result = run.evaluation, run.result
        score = result.score if result else evaluation.score if evaluation else None
        held_out = number(evaluation.return_mean) if evaluation else "-"
        seed = str(result.seed) if result else "-"
        steps = f"{run.iterations[-1].env_steps:,}" if run.iterations else "0"
        ci95 = interval(evaluation.return_ci95 if evaluation else None)
        rows.append([run.name, seed, number(score, ".3f"), held_out, ci95, steps])
    return table(["run", "seed", "score", "held-out return", "95% interval", "env steps"], rows)


def _section(title: str, chart: Chart, **attributes: str) -> Html:
    if not any(trace["x"] for trace in chart["data"]):
        return tag("section", tag("h2", title), tag("p", "Nothing was recorded."))
    figure = Html(f'<script type="application/json" class="chart">{script_json(chart)}</script>')
    return tag("section", tag("h2", title), tag("div", figure, class_="plot"), **attributes)


def _episodes(run: Run) -> Html:
    told = [_episode(stem, episode) for stem, episode in run.episodes(EPISODES)]
    shown = told or [tag("p", "None were sampled.")]
    return tag("section", tag("h2", "Sampled episodes, newest first"), *shown, class_="wide")


def _episode(stem: str, episode: EpisodeStory) -> Html:
    rows = [_decision(decision) for decision in episode.decisions]
    head = ["agent", "saw", "called", "got", "paid"]
    return tag("details", tag("summary", f"{stem} · {episode.title}"), table(head, rows, class_="episode"))


def _decision(decision: Decision) -> list[str]:
    lines = decision.observation.splitlines()
    saw = tag("details", tag("summary", lines[-1] if lines else ""), tag("pre", decision.observation))
    sure = f" (p {decision.probability:.2f})" if decision.probability is not None else ""
    got = [tag("div", text, class_="failed" if decision.failed else "got") for text in decision.answers]
    sent = [tag("div", f"sent {message}") for message in decision.sent]
    paid = join(tag("b", f"{decision.paid:+.2f}"), tag("div", decision.reasons)) if decision.rewards else Html()
    return [f"{decision.agent} {decision.turn}", saw, f"{decision.call}{sure}", join(*got, *sent), paid]


def _experiment(run: Run) -> Html:
    text = tag("details", tag("summary", "experiment.yaml, resolved"), tag("pre", run.experiment))
    return tag("section", tag("h2", "Experiment"), text, class_="wide")


def _page(title: str, body: Sequence[Html]) -> str:
    from plotly.offline import get_plotlyjs

    page = Template((files("telemetry") / "report_page.html").read_text(encoding="utf-8"))
    return page.substitute(title=join(title), body=join(*body), plotly=get_plotlyjs())


if __name__ == "__main__":
    sys.exit(main())
