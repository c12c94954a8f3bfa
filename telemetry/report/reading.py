"""A run directory as it is, whole or broken: what can be read, and in words what cannot."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from telemetry.durable import RecordLost, complete_lines
from telemetry.episode import EpisodeStory, story
from telemetry.records_file import episode_files, read_episode
from telemetry.run_dir import EXPERIMENT, METRICS, RECORDS, RESULT_FILE, Run, read_result
from telemetry.scalars import ITERATION, IterationReport

AUDIT_FILE, GATES_FILE = "audit.json", "gates.json"
STATISTICS_FILE = Path("version", "standardizer.json")
MARKS = (METRICS, RESULT_FILE, EXPERIMENT, AUDIT_FILE, GATES_FILE)
"""A directory that holds none of these is not a run's."""
T = TypeVar("T")


class Part(BaseModel):
    """A part of a file that others write, and may write more into."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class Evidence(Part):
    """What a finding rests on."""

    numbers: Mapping[str, float | None] = {}
    saw: str = ""
    used: str = ""


class Finding(Part):
    """One thing that the audit found."""

    check: str
    severity: str
    message: str
    remedy: str = ""
    where: Mapping[str, str | int | None] = {}
    evidence: Evidence = Evidence()
    waived: str | None = None
    """Why it is accepted; None where it is not."""


class Check(Part):
    """A check that the audit was asked for."""

    promise: str
    seconds: float
    skipped: str = ""
    """Why it does not apply; empty where it was run."""


class Audit(Part):
    """audit.json."""

    ok: bool
    findings: tuple[Finding, ...] = ()
    ran: Mapping[str, Check] = {}


class Measure(Part):
    """One figure of a gate, beside its threshold."""

    what: str
    ok: bool
    value: float | None = None
    unit: str = ""
    wanted: str = ""
    note: str = ""


class Gate(Part):
    """A gate that was tried."""

    name: str
    promise: str
    ok: bool
    measures: tuple[Measure, ...] = ()
    not_applicable: str = ""


class Gates(Part):
    """gates.json."""

    ok: bool
    gates: tuple[Gate, ...] = ()


class Moments(Part):
    """An agent's rewards, in the terms' unit."""

    mean: float
    variance: float


class Statistics(Part):
    """version/standardizer.json: what rewards are standardized with once a run has ended."""

    center: bool
    clip: float
    keys: Mapping[str, Moments] = {}

    def standardized(self, agent: str, reward: float) -> float | None:
        """The reward in standard deviations; None for an agent whose statistics are not its own or do not vary."""
        of = self.keys.get(agent)
        scaled = self.scaled(agent, reward - of.mean if of and self.center else reward)
        return None if scaled is None else max(-self.clip, min(self.clip, scaled))

    def scaled(self, agent: str, value: float) -> float | None:
        """A part of a reward in standard deviations: the mean is subtracted once, from the whole."""
        of = self.keys.get(agent)
        return value / of.variance**0.5 if of and of.variance > 0 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What a run directory tells."""

    run: Run
    audit: Audit | None
    gates: Gates | None
    statistics: Statistics | None
    gaps: list[str] = field(default_factory=list[str])
    """What is missing or cannot be read, a sentence each."""

    def episodes(self) -> Iterator[tuple[int, EpisodeStory]]:
        """Number and story of every sampled episode that can be read, newest first; the others become gaps."""
        for path in reversed(episode_files(self.run.path / RECORDS)):
            try:
                records = read_episode(path)
            except (RecordLost, OSError, UnicodeDecodeError) as error:
                self.gaps.append(f"{RECORDS}/{path.name} cannot be read: {_short(error)}")
                continue
            if records:
                yield int(path.stem), story(records)
            else:
                self.gaps.append(f"{RECORDS}/{path.name} holds no whole record")


def is_run(path: Path) -> bool:
    """Whether anything in the directory is a run's."""
    return any((path / name).is_file() for name in MARKS)


def account_of(path: Path) -> Account:
    """Read a run directory, whatever state it is in.

    Raises:
        RecordLost: there is nothing of a run in it.
    """
    if not is_run(path):
        raise RecordLost(f"reading {path}", f"none of {', '.join(MARKS)} is in it: not a run directory")
    gaps: list[str] = []
    result = _read(path / RESULT_FILE, read_result, gaps, "the run has not ended, or was killed")
    run = Run(
        path=path,
        iterations=_iterations(path / METRICS, gaps),
        result=result,
        experiment=_read(path / EXPERIMENT, lambda p: p.read_text(encoding="utf-8"), gaps, "its settings are unknown")
        or "",
    )
    return Account(
        run=run,
        audit=_read(path / AUDIT_FILE, _model(Audit), gaps, "the reward was not audited"),
        gates=_read(path / GATES_FILE, _model(Gates), gaps, "no gate was tried"),
        statistics=_read(path / STATISTICS_FILE, _model(Statistics), []),
        gaps=gaps,
    )


def _model(kind: type[T]) -> Callable[[Path], T]:
    return lambda path: TypeAdapter(kind).validate_json(path.read_bytes())


def _read(path: Path, reader: Callable[[Path], T], gaps: list[str], without: str = "") -> T | None:
    """What the reader makes of a file; None, and a gap, where it is missing or makes no sense."""
    if not path.is_file():
        gaps.append(f"there is no {path.name}: {without}")
        return None
    try:
        return reader(path)
    except (ValidationError, RecordLost, OSError, UnicodeDecodeError) as error:
        gaps.append(f"{path.name} cannot be read: {_short(error)}")
        return None


def _iterations(path: Path, gaps: list[str]) -> list[IterationReport]:
    if not path.is_file():
        gaps.append(f"there is no {path.name}: nothing was trained")
        return []
    found: list[IterationReport] = []
    wrong: list[int] = []
    for number, line in _lines(path, gaps):
        try:
            found.append(ITERATION.validate_json(line))
        except ValidationError:
            wrong.append(number)
    if wrong:
        gaps.append(f"{path.name}: {_counted(wrong)} no iteration and {'is' if len(wrong) == 1 else 'are'} left out")
    if not _ends_well(path):
        gaps.append(f"{path.name}: the last line is torn and left out")
    return found


def _lines(path: Path, gaps: list[str]) -> Iterator[tuple[int, str]]:
    try:
        yield from complete_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        gaps.append(f"{path.name} cannot be read to its end: {_short(error)}")


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(-1, 2)
        return not size or file.read(1) == b"\n"


def _counted(numbers: Sequence[int]) -> str:
    return (
        f"line {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} lines, the first of them {numbers[0]}, are"
    )


def _short(error: Exception) -> str:
    """The first line of an error, which may quote a whole file."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
