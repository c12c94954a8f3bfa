"""The run as TensorBoard shows it. It is a view: where it breaks, it says so once and the run carries on."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.records import AnyRecord
from telemetry.curves import Ema
from telemetry.episode import story, story_text
from telemetry.events_file import Charts, EventsFile, OpenFile
from telemetry.scalars import EvaluationReport, IterationReport, evaluation_curves, scalars
from telemetry.views import View

FINAL = ("final/score", "final/return", "final/success")
"""What runs are ranked by in TensorBoard's table of settings."""
SMOOTHED = re.compile(r"team/return|agent/[^/]+/return|agent/[^/]+/term/.+")
"""Curves that are drawn smoothed as well."""
ACTIONS = 1000
"""Entries of a histogram of actions: a tenth of a percent of an agent's calls is one."""


class TensorBoardLog:
    """Writes a run's curves, histograms and episodes for TensorBoard, over env steps.

    Args:
        directory: The run's ``tensorboard/``.
        baselines: Mean returns that the team's is drawn beside, in the terms' unit.
        resumed_at: Env steps of the checkpoint that a resumed run starts from: later points are hidden.
        past: The iterations before it: smoothed curves go on from them.
        open_file: Opens the event file.
    """

    def __init__(
        self,
        directory: Path,
        *,
        baselines: Mapping[str, float] | None = None,
        resumed_at: int | None = None,
        past: Sequence[IterationReport] = (),
        open_file: OpenFile | None = None,
    ) -> None:
        self.view = View(f"TensorBoard's log in {directory}")
        self._baselines = {f"team/baseline/{name}": value for name, value in (baselines or {}).items()}
        self._averages: dict[str, Ema] = {}
        for report in past:
            self._smoothed(scalars(report))
        self._charts: Charts = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._step, self._evaluated = resumed_at or 0, False
        self._file: EventsFile | None = None
        self.view(lambda: self._open(directory, resumed_at, open_file))

    def show(self, report: IterationReport) -> None:
        """Add the iteration to every curve."""
        self._step, self._evaluated = report.env_steps, report.evaluation is not None
        self.view(lambda: self._show(report))

    def evaluated(self, evaluation: EvaluationReport) -> None:
        """Add an evaluation after the last iteration shown, unless that one brought its own."""
        if not self._evaluated:
            self.view(lambda: self._events.scalars(evaluation_curves(evaluation), self._step))

    def histograms(self, values: Mapping[str, Sequence[float]]) -> None:
        """Add distributions (returns, rewards) at the last iteration shown; an empty one is left out."""
        for tag, numbers in values.items():
            if len(numbers):
                self.view(lambda tag=tag, numbers=numbers: self._events.histogram(tag, numbers, self._step))

    def actions(self, agent: str, counts: Mapping[str, int]) -> None:
        """Add how often an agent called each tool, as a histogram of the tools' numbers; a text names them."""
        if any(counts.values()):
            self.view(lambda: self._actions(agent, counts))

    def episode(self, name: str, records: Sequence[AnyRecord]) -> None:
        """Add a sampled episode as text at the last iteration shown."""
        self.view(lambda: self._events.text(f"episode/{name}", _as_code(story_text(story(records))), self._step))

    def close(
        self, settings: Mapping[str, float | str | bool] | None = None, final: Mapping[str, float | None] | None = None
    ) -> None:
        """Write the settings with the final figures (of ``FINAL``), where there are any, and close the file."""
        known = {tag: value for tag, value in (final or {}).items() if value is not None}
        self.view(lambda: self._finish(settings or {}, known))
        if self._file is not None:
            with suppress(OSError):  # said already, where the view broke
                self._file.close()

    @property
    def _events(self) -> EventsFile:
        if self._file is None:
            raise RuntimeError("the event file is not open")
        return self._file

    def _open(self, directory: Path, resumed_at: int | None, open_file: OpenFile | None) -> None:
        self._file = EventsFile(directory, open_file)
        if resumed_at is not None:
            self._events.restart(resumed_at + 1)
        self._events.flush()

    def _show(self, report: IterationReport) -> None:
        if (charts := _charts(report.agents)) != self._charts:
            self._charts = charts
            self._events.layout(charts)
        values = scalars(report)
        self._events.scalars({**values, **self._smoothed(values), **self._baselines}, report.env_steps)
        self._events.flush()

    def _smoothed(self, values: Mapping[str, float]) -> dict[str, float]:
        averages: dict[str, float] = {}
        for tag, value in values.items():
            if SMOOTHED.fullmatch(tag):
                average = self._averages.setdefault(tag, Ema()).update(value)
                assert average is not None, "curves hold finite numbers only"
                averages[_smoothed_tag(tag)] = average
        return averages

    def _actions(self, agent: str, counts: Mapping[str, int]) -> None:
        numbers, known = self._numbers.setdefault(agent, {}), len(self._numbers.get(agent, {}))
        for tool in counts:
            numbers.setdefault(tool, len(numbers))
        if len(numbers) > known:
            named = "\n".join(f"{number}: {tool}" for tool, number in numbers.items())
            self._events.text(f"agent/{agent}/actions", _as_code(named), self._step)
        share = ACTIONS / sum(counts.values())
        entries = [float(numbers[tool]) for tool, count in counts.items() for _ in range(round(count * share))]
        self._events.histogram(f"agent/{agent}/action", entries, self._step)

    def _finish(self, settings: Mapping[str, float | str | bool], final: Mapping[str, float]) -> None:
        if settings:
            self._events.hparams(settings, FINAL)
        if final:
            self._events.scalars(final, self._step)
        self._events.close()


def _smoothed_tag(tag: str) -> str:
    """``agent/NAME/term_smoothed/TERM``, ``team/return_smoothed``: beside the raw curve, in a group of its own."""
    start, term, name = tag.partition("/term/")
    return f"{start}/term_smoothed/{name}" if term else f"{tag}_smoothed"


def _charts(agents: Iterable[str]) -> Charts:
    team = {
        "Return beside the baselines": ["^team/return$", "^team/return_smoothed$", "^team/baseline/"],
        "Evaluation beside the baselines": ["^eval/return$", "^eval/baseline/"],
        "Evaluation, 95% interval": ["^eval/return$", "^eval/return_low$", "^eval/return_high$"],
        "Return of each agent, smoothed": ["^agent/[^/]+/return_smoothed$"],
        "Entropy (nat)": ["^agent/[^/]+/entropy$"],
        "KL (nat)": ["^agent/[^/]+/kl$"],
    }
    return {"Team": team, **{name: _agent_charts(f"^agent/{re.escape(name)}/") for name in agents}}


def _agent_charts(start: str) -> dict[str, list[str]]:
    return {
        "Reward terms per episode, smoothed": [f"{start}term_smoothed/"],
        "Reward terms per episode, raw": [f"{start}term/"],
        "Return, raw and smoothed": [f"{start}return$", f"{start}return_smoothed$"],
        "Tool mix": [f"{start}tool/"],
        "Raw reward": [f"{start}reward_raw_mean$", f"{start}reward_raw_std$"],
        "Standardized reward": [f"{start}reward_standardized_mean$", f"{start}reward_standardized_std$"],
        "Clip fraction and explained variance": [f"{start}clip_fraction$", f"{start}explained_variance$"],
    }


def _as_code(text: str) -> str:
    """Indented, so that TensorBoard's Markdown shows agents' words as they are."""
    return "\n".join(f"    {line}" for line in text.splitlines())
