"""Regression cases: sessions that went badly, kept in a JSONL file to be played again by every later version.

A line is a case, and whole: the recorded session with its records, so that it can be replayed without the store that it
came from. Cases are evaluated on and never trained on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from assembly.experiment import Experiment
from assembly.paid import Compared, Paid, paid_in
from assembly.recorded import HeldOut
from envs.scenarios import Listed, Source
from runtime.errors import TeamError
from runtime.recorded import RecordedSession
from runtime.records import Closed
from runtime.types import Scenario
from telemetry.durable import replace_file

COPY = "regressions.jsonl"
"""The cases in a run's own directory."""
SAMPLE = 2000
"""Scenarios of a stream that are looked at to tell how cases can be recognized in it, and how many are among them."""
ALIKE = 0.05
"""The share of a stream that may be left out with the cases: more is no case any more but a kind of cases."""


class Case(Closed):
    """A session that went badly."""

    name: Annotated[str, Field(pattern=r"^[^\s/]{1,128}$")]
    """What reports call it: the session's id, unless somebody gave it another."""
    why: str = ""
    """Why it was kept, in words."""
    session: RecordedSession

    @property
    def scenario(self) -> Scenario:
        """The task, to be played again."""
        return self.session.case()

    @property
    def paid(self) -> Paid:
        """What the recorded session was paid, by term."""
        return paid_in(self.session.told())

    def worse(self, paid: Compared, success: bool | None) -> bool:
        """Whether a run of it went worse: it was paid less than the recorded one, or no longer ended well.

        Args:
            paid: what both were paid.
            success: how the run ended; None: that is not known, which is not worse.
        """
        return paid.verdict() == "worse" or (self.session.success and success is False)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        TeamError: a line is no case, or two have one name; with line numbers.
        OSError: the file cannot be read.
        UnicodeError: it is not UTF-8.
    """
    found: dict[str, Case] = {}
    problems: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            case = Case.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            problems.append(f"line {number}: no regression case: {place}: {first['msg']}")
            continue
        if case.name in found:
            problems.append(f"line {number}: a case before is called {case.name!r} too: rename one")
        found.setdefault(case.name, case)
    if not found and not problems:
        problems.append("it holds no case; python -m serving.regressions add puts some into it")
    if problems:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise TeamError(f"{path}: {'; '.join(problems[:5])}{more}")
    return list(found.values())


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Write a file of cases, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, "".join(f"{case.model_dump_json()}\n" for case in cases))


def taken_along(experiment: Experiment, directory: Path) -> Experiment:
    """The experiment with its regression cases copied beside it: a resumed run leaves the same ones out of training."""
    named = experiment.evaluation.regressions
    if named is None:
        return experiment
    copy = (directory / COPY).resolve()
    if Path(named) != copy:
        replace_file(copy, Path(named).read_text(encoding="utf-8"))
    evaluation = experiment.evaluation.model_copy(update={"regressions": str(copy)})
    return experiment.model_copy(update={"evaluation": evaluation})


@dataclass(frozen=True, slots=True)
class Kept:
    """Scenarios to train on."""

    source: Source
    dropped: int = 0
    """How many were regression cases and were left out; of an endless stream, among the first ``SAMPLE``."""


def without(source: Source, cases: Sequence[Case]) -> Kept:
    """The scenarios without those of the cases, which are recognized by a hash of what they say.

    Where texts are few, so that different scenarios say the same, their chance counts, too.

    Raises:
        TeamError: the scenarios are so alike that leaving the cases out would leave out others with them.
    """
    if not cases:
        return Kept(source)
    count = len(source.scenarios) if isinstance(source, Listed) else min(source.count or SAMPLE, SAMPLE)
    first = source.scenarios if isinstance(source, Listed) else [source(index) for index in range(count)]
    known = HeldOut.of([case.scenario for case in cases], first)
    dropped = sum(scenario in known for scenario in first)
    if dropped > max(len(cases), ALIKE * count) or dropped == count:
        raise TeamError(
            f"{dropped} of {count} training scenarios are the same as one of {len(cases)} regression cases: they are "
            "too alike to keep some out of training; give each a seed, or more that tells them apart"
        )
    if isinstance(source, Listed):
        return Kept(replace(source, scenarios=[s for s in first if s not in known]), dropped)
    return Kept(replace(source, barred=known), dropped)
