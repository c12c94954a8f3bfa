"""A run directory, read back."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from telemetry.durable import RecordLost
from telemetry.metrics_file import read_metrics
from telemetry.records_file import episode_files
from telemetry.scalars import RESULT, EvaluationReport, Figure, IterationReport, RunResult

METRICS, RECORDS, RESULT_FILE, EXPERIMENT = "metrics.jsonl", "records", "result.json", "experiment.yaml"

NOT_ENDED = "not ended"
"""The status of a run without a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a run left behind."""

    path: Path
    iterations: list[IterationReport]
    result: RunResult | None
    """None while it has not ended."""
    experiment: str
    """The resolved experiment file's text; empty where there is none."""

    @property
    def name(self) -> str:
        """The run's short name: the directory's last two parts."""
        return "/".join(self.path.resolve().parts[-2:])

    @property
    def evaluation(self) -> EvaluationReport | None:
        """The final evaluation, or else the last one."""
        if self.result is not None and self.result.eval is not None:
            return self.result.eval
        return next((r.evaluation for r in reversed(self.iterations) if r.evaluation), None)

    @property
    def score(self) -> Figure:
        """The final score, or else that of the last evaluation."""
        if self.result is not None and self.result.score is not None:
            return self.result.score
        return self.evaluation.score if self.evaluation else None

    @property
    def last(self) -> IterationReport | None:
        """The last iteration on record."""
        return self.iterations[-1] if self.iterations else None

    @property
    def status(self) -> str:
        """How it ended, in a word."""
        return self.result.status if self.result else NOT_ENDED

    @property
    def baselines(self) -> dict[str, Figure]:
        """Each baseline's mean return, in the terms' unit."""
        found: dict[str, Figure] = {}
        for part in (self.evaluation, self.result):
            found.update(part.baselines if part else ())
        return found

    @property
    def agents(self) -> list[str]:
        """Every agent with figures, in the order in which they are reported."""
        return list(dict.fromkeys(name for report in self.iterations for name in report.agents))

    def sampled(self) -> list[Path]:
        """Files of the sampled episodes, oldest first."""
        return episode_files(self.path / RECORDS)


def read_run(path: Path) -> Run:
    """Read a run directory, ended or not.

    Raises:
        RecordLost: it holds no metrics.jsonl, or a file in it cannot be read.
    """
    if not (path / METRICS).is_file():
        raise RecordLost(f"reading {path}", f"no {METRICS} in it: not a run directory")
    experiment = path / EXPERIMENT
    return Run(
        path=path,
        iterations=read_metrics(path / METRICS),
        result=read_result(path / RESULT_FILE),
        experiment=experiment.read_text(encoding="utf-8") if experiment.is_file() else "",
    )


def read_result(path: Path) -> RunResult | None:
    """How the run ended; None where the file is not there yet. Raises RecordLost where it cannot be read."""
    if not path.is_file():
        return None
    try:
        return RESULT.validate_json(path.read_bytes())
    except ValidationError as error:
        raise RecordLost(f"reading {path}", str(error)) from error
