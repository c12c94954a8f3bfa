"""metrics.jsonl: one JSON line an iteration, there even after a kill -9. Losing one stops the run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from telemetry.durable import LineFile, RecordLost, complete_lines, replace_file
from telemetry.scalars import ITERATION, IterationReport


class MetricsFile:
    """Appends a run's iterations to metrics.jsonl and cuts it back to a checkpoint on resume.

    Raises:
        RecordLost: a line cannot be written, or the file holds one that is not an iteration.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = LineFile(path)
        self._last = max((r.iteration for r in _reports(path)), default=0)

    def append(self, report: IterationReport) -> None:
        """Write one iteration. Raises ValueError where it does not come after the last one."""
        if report.iteration <= self._last:
            raise ValueError(f"iteration {report.iteration} after {self._last}; truncate {self.path} on resume")
        self._lines.append(ITERATION.dump_json(report).decode())
        self._last = report.iteration

    def truncate_after(self, iteration: int) -> None:
        """Forget the iterations after that one: the run goes on from its checkpoint."""
        kept = [line for _, line in complete_lines(self.path) if ITERATION.validate_json(line).iteration <= iteration]
        self._lines.close()
        replace_file(self.path, "".join(f"{line}\n" for line in kept))
        self._lines = LineFile(self.path)
        self._last = min(self._last, iteration)

    def close(self) -> None:
        """Close the file; everything is written already."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_metrics(path: Path) -> list[IterationReport]:
    """All iterations of a run; a torn last line is skipped. Raises RecordLost for any other that cannot be read."""
    return list(_reports(path))


def _reports(path: Path) -> Iterator[IterationReport]:
    for number, line in complete_lines(path):
        try:
            yield ITERATION.validate_json(line)
        except ValidationError as error:
            raise RecordLost(f"reading {path}, line {number}", str(error)) from error
