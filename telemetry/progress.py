"""What the user watches: a live display on a terminal, one line per iteration anywhere else, and the closing table."""

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from telemetry.figures import NONE, beside_baselines, duration, interval, number, plain_line
from telemetry.scalars import (
    AgentEvaluation,
    CaseReport,
    EvaluationReport,
    IterationReport,
    RunResult,
    largest_kl,
    mean_entropy,
)
from telemetry.views import View

LOG = logging.getLogger(__name__)
BAR_WIDTH = 40


class RunConsole(Console):
    """A console whose reader may go away: the run carries on unseen, where rich's own would exit the process."""

    def on_broken_pipe(self) -> None:
        """Say so once and write no more."""
        self.quiet = True
        LOG.warning("nobody reads the progress display any more; the run carries on")
        if self.file is sys.stdout:  # else Python fails to flush it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@dataclass(frozen=True, kw_only=True, slots=True)
class Until:
    """When a run ends at the latest; None is no limit."""

    iterations: int | None = None
    seconds: float | None = None
    """Of training, s."""

    def done(self, report: IterationReport) -> float:
        """How far the run is, 0 to 1."""
        shares = [0.0]
        if self.iterations:
            shares.append(report.iteration / self.iterations)
        if self.seconds:
            shares.append(report.seconds / self.seconds)
        return min(1.0, max(shares))

    def left(self, report: IterationReport) -> float | None:
        """Seconds to go at the pace so far; None where nothing limits the run."""
        done = self.done(report)
        return report.seconds * (1 - done) / done if done else None


class Progress(Protocol):
    """Shows a run while it goes on."""

    def start(self) -> None:
        """Begin: nothing has been trained yet."""
        ...

    def show(self, report: IterationReport) -> None:
        """Show an iteration."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was, with the last figures on it."""
        ...


class PlainProgress:
    """One aligned line per iteration: for logs, pipes and small terminals."""

    def __init__(self, console: RunConsole, until: Until) -> None:
        self.console, self.until = console, until
        self.view = View("the progress display")

    def start(self) -> None:
        """Nothing to show yet."""

    def show(self, report: IterationReport) -> None:
        """Print the iteration's line."""
        line = plain_line(report, self.until.iterations, self.until.left(report))
        self.view(lambda: self.console.print(line, markup=False, highlight=False, soft_wrap=True))

    def close(self) -> None:
        """Nothing is left open."""


class LiveProgress:
    """A bar with the figures that matter, drawn in place."""

    def __init__(self, console: RunConsole, until: Until) -> None:
        self.until = until
        self.view = View("the progress display")
        self._live = Live(Text("Sampling the first batch …"), console=console, auto_refresh=False)
        self._evaluation: EvaluationReport | None = None

    def start(self) -> None:
        """Take the terminal's last lines."""
        self.view(lambda: self._live.start(refresh=True))

    def show(self, report: IterationReport) -> None:
        """Redraw with the iteration's figures; the last evaluation stays."""
        self._evaluation = report.evaluation or self._evaluation
        self.view(lambda: self._live.update(self._drawn(report), refresh=True))

    def close(self) -> None:
        """Give the terminal back."""
        self.view(self._live.stop)

    def _drawn(self, report: IterationReport) -> RenderableType:
        parts: list[RenderableType] = [self._bar(report), _team(report)]
        if report.agents:
            parts.append(_agents(report))
        if self._evaluation is not None:
            parts.append(Text(f"Held out: {beside_baselines(self._evaluation)}", style="bold"))
        return Group(*parts)

    def _bar(self, report: IterationReport) -> Table:
        of = f"/{self.until.iterations}" if self.until.iterations else ""
        row = Table.grid(padding=(0, 2))
        row.add_row(
            Text(f"Iteration {report.iteration}{of}", style="bold"),
            ProgressBar(total=1.0, completed=self.until.done(report), width=BAR_WIDTH),
            Text(f"{duration(self.until.left(report))} left"),
        )
        return row


def progress(console: RunConsole, until: Until) -> Progress:
    """The live display where the console is a terminal that can draw it, else plain lines."""
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveProgress(console, until) if live else PlainProgress(console, until)


def closing_table(result: RunResult, places: Mapping[str, Path]) -> Table:
    """How the run ended, beside the baselines, and where everything lies."""
    table = Table(title=f"{result.status}: seed {result.seed}", title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _closing_rows(result, result.eval):
        table.add_row(Text(name), Text(value))
    table.add_section()
    for name, path in places.items():
        table.add_row(Text(name), Text(str(path)))
    return table


def _closing_rows(result: RunResult, evaluation: EvaluationReport | None) -> list[tuple[str, str]]:
    trained = f"{result.iterations} iterations, {result.env_steps:,} steps, {duration(result.seconds)}"
    rows = [("score", number(result.score, ".3f")), *_evaluated(evaluation)]
    rows += [(f"baseline {name}", number(value)) for name, value in result.baselines.items()]
    rows += [
        (f"swap {pair}", f"{number(value)} when the two exchange policies") for pair, value in result.role_swaps.items()
    ]
    return [*rows, *_regressed(result.regressions), ("trained", trained), ("version", result.version or NONE)]


def _regressed(cases: Mapping[str, CaseReport]) -> list[tuple[str, str]]:
    """How many regression cases passed and went worse than they were recorded, and those that did."""
    if not cases:
        return []
    passed, worse = sum(c.passed for c in cases.values()), {n: c for n, c in cases.items() if c.worse}
    rows = [("regressions", f"{passed} of {len(cases)} passed, {len(worse)} worse than recorded")]
    return rows + [
        (f"worse {name}", f"{number(c.return_now)}, recorded {number(c.return_recorded)}") for name, c in worse.items()
    ]


def _evaluated(evaluation: EvaluationReport | None) -> list[tuple[str, str]]:
    if evaluation is None:
        return [("evaluation", "none")]
    return [
        ("return", f"{number(evaluation.return_mean)}  95% {interval(evaluation.return_ci95)}"),
        ("success", number(evaluation.success_rate, ".1%")),
        ("per episode", f"{number(evaluation.tool_calls)} tool calls, {number(evaluation.cost_usd)} USD"),
        ("episodes", f"{evaluation.episodes:,} held out"),
        *((f"agent {name}", _agent_evaluated(agent)) for name, agent in evaluation.agents.items()),
    ]


def _agent_evaluated(agent: AgentEvaluation) -> str:
    calls = f"{number(agent.tool_calls)} tool calls, {number(agent.invalid_calls)} invalid"
    return f"{number(agent.return_mean)}  {calls}"


def _team(report: IterationReport) -> Text:
    figures = {
        "return": number(report.return_mean),
        "entropy": number(mean_entropy(report), ".3f"),
        "KL": number(largest_kl(report), ".4f"),
        "steps/s": number(report.steps_per_second, ",.0f"),
        "steps": f"{report.env_steps:,}",
    }
    text = Text("  ").join(Text.assemble((f"{name} ", "dim"), value) for name, value in figures.items())
    if report.missing_rewards:
        text.append(f"  {report.missing_rewards} rewards missing", style="bold red")
    return text


def _agents(report: IterationReport) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("agent")
    for name in ("return", "entropy", "KL", "clipped", "explained", "invalid"):
        table.add_column(name, justify="right")
    for name, agent in report.agents.items():
        figures = [number(agent.return_mean), number(agent.entropy, ".3f"), number(agent.kl, ".4f")]
        figures += [number(agent.clip_fraction, ".1%"), number(agent.explained_variance), str(agent.invalid_calls)]
        table.add_row(*map(Text, [name, *figures]))
    return table
