"""Who is told of each iteration: the metrics file and sampled episodes first, then what only shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from runtime.records import AnyRecord
from telemetry.metrics.meters import Meters
from telemetry.metrics.training import feed
from telemetry.metrics_file import MetricsFile
from telemetry.progress import Progress
from telemetry.records_file import RecordsDir, episode_files, number_of, read_episode
from telemetry.scalars import IterationReport, RunResult
from telemetry.tensorboard import FINAL, TensorBoardLog
from trainers.checkpoints import TrainerState
from trainers.rllib.engine import Iterated

SAMPLE_EVERY = 5
"""Iterations between episodes that are kept."""


class MetricsLines:
    """metrics.jsonl."""

    def __init__(self, file: MetricsFile) -> None:
        self.file = file

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Write the iteration."""
        self.file.append(report)

    def back_to(self, state: TrainerState) -> None:
        """Forget what came after a checkpoint."""
        self.file.truncate_after(state.iteration)


class EpisodeSamples:
    """records/: one training episode every few iterations."""

    def __init__(self, directory: RecordsDir) -> None:
        self.directory = directory

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Keep the iteration's sampled episode, if it is one of those."""
        sample = given.tally.sample
        if sample and report.iteration % SAMPLE_EVERY == 1:
            self.directory.write(number_of(report.iteration), cast("list[AnyRecord]", list(sample)))


class Panel:
    """TensorBoard."""

    def __init__(self, log: TensorBoardLog) -> None:
        self.log = log

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Add the iteration's curves, histograms and sampled episode."""
        self.log.show(report)
        tally = given.tally
        rewards = {f"agent/{agent}/reward": values for agent, values in tally.rewards.items()}
        self.log.histograms({"returns": tally.returns, **rewards})
        for agent in report.agents:
            self.log.actions(agent, {tool: n for (a, tool), n in sorted(tally.calls.items()) if a == agent})
        if tally.sample and report.iteration % SAMPLE_EVERY == 1:
            self.log.episode("sample", cast("list[AnyRecord]", list(tally.sample)))

    def finish(self, settings: Mapping[str, float | str | bool], result: RunResult, records: Path) -> None:
        """Write the held-out episodes, and the settings beside what the run came to."""
        self.log.view(lambda: self._held_out(number_of(result.iterations, held_out=0), records))
        found = result.eval
        if found is not None:
            self.log.evaluated(found)
        success, returned = (found.success_rate, found.return_mean) if found else (None, None)
        self.log.close(settings, dict(zip(FINAL, (result.score, returned, success), strict=True)))

    def _held_out(self, first: int, records: Path) -> None:
        for path in episode_files(records):
            if int(path.stem) >= first:
                self.log.episode(f"held_out/{path.stem}", read_episode(path))


class Instruments:
    """The metrics port, and whatever reads it. Fed last: it is only a view."""

    def __init__(self, meters: Meters) -> None:
        self.meters = meters

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Put the iteration into the instruments."""
        feed(self.meters, report, given.latencies_ms)


class OnScreen:
    """The terminal."""

    def __init__(self, display: Progress) -> None:
        self.display = display

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Show the iteration."""
        self.display.show(report)
