"""The run as TensorBoard shows it. It is a view: where it breaks, it says so once and the run carries on."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.records import AnyRecord
from telemetry.curves import Ema
from telemetry.episode import story, story_text
from telemetry.events_file import Charts, EventsFile, OpenFile
from telemetry.scalars import IterationReport, scalars
from telemetry.views import View

SCORE = "final/score"


class TensorBoardLog:
    """Writes a run's curves, histograms and episodes for TensorBoard, over env steps.

    Args:
        directory: The run's ``tensorboard/``.
        resumed_at: Env steps of the checkpoint that a resumed run starts from: later points are hidden.
        open_file: Opens the event file.
    """

    def __init__(self, directory: Path, *, resumed_at: int | None = None, open_file: OpenFile | None = None) -> None:
        self.view = View(f"TensorBoard's log in {directory}")
        self._average = Ema()
        self._charts: Charts = {}
        self._step = resumed_at or 0
        self._file: EventsFile | None = None
        self.view(lambda: self._open(directory, resumed_at, open_file))

    def show(self, report: IterationReport) -> None:
        """Add the iteration to every curve."""
        self._step = report.env_steps
        self.view(lambda: self._show(report))

    def histograms(self, values: Mapping[str, Sequence[float]]) -> None:
        """Add distributions (rewards, actions) at the last iteration shown; an empty one is left out."""
        for tag, numbers in values.items():
            if len(numbers):
                self.view(lambda tag=tag, numbers=numbers: self._events.histogram(tag, numbers, self._step))

    def episode(self, name: str, records: Sequence[AnyRecord]) -> None:
        """Add a sampled episode as text at the last iteration shown."""
        self.view(lambda: self._events.text(f"episode/{name}", _as_code(story_text(story(records))), self._step))

    def close(self, settings: Mapping[str, float | str | bool] | None = None, score: float | None = None) -> None:
        """Write the settings with the final score, where there is one, and close the file."""
        self.view(lambda: self._finish(settings or {}, score))
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
        smoothed = self._average.update(report.return_mean)
        if smoothed is not None:
            values["team/return_smoothed"] = smoothed
        self._events.scalars(values, report.env_steps)
        self._events.flush()

    def _finish(self, settings: Mapping[str, float | str | bool], score: float | None) -> None:
        if settings:
            self._events.hparams(settings, SCORE)
        if score is not None:
            self._events.scalars({SCORE: score}, self._step)
        self._events.close()


def _charts(agents: Iterable[str]) -> Charts:
    team = {
        "Return, raw and smoothed": ["^team/return$", "^team/return_smoothed$"],
        "Evaluation beside the baselines": ["^eval/return$", "^eval/baseline/"],
        "Evaluation, 95% interval": ["^eval/return$", "^eval/return_low$", "^eval/return_high$"],
        "Return of each agent": ["^agent/[^/]+/return$"],
        "Entropy (nat)": ["^agent/[^/]+/entropy$"],
        "KL (nat)": ["^agent/[^/]+/kl$"],
    }
    return {"Team": team, **{name: _agent_charts(f"^agent/{re.escape(name)}/") for name in agents}}


def _agent_charts(start: str) -> dict[str, list[str]]:
    return {
        "Reward terms per episode": [f"{start}term/"],
        "Tool mix": [f"{start}tool/"],
        "Raw reward": [f"{start}reward_raw_mean$", f"{start}reward_raw_std$"],
        "Standardized reward": [f"{start}reward_standardized_mean$", f"{start}reward_standardized_std$"],
        "Clip fraction and explained variance": [f"{start}clip_fraction$", f"{start}explained_variance$"],
    }


def _as_code(text: str) -> str:
    """Indented, so that TensorBoard's Markdown shows agents' words as they are."""
    return "\n".join(f"    {line}" for line in text.splitlines())
