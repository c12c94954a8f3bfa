"""What a check says: findings, and the report that lists them."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from runtime.errors import RepertoryError

_ENGINE = (Path(__file__).parent, Path(__file__).parent.parent, Path(__file__).parent.parent.parent / "runtime")
"""Folders of the engine: a frame in one of them is ours, any other is the user's or a library's."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    ok: bool
    message: str
    where: str = ""
    """Role, tool, scenario or file and line."""
    remedy: str = ""
    todo: bool = False
    """Nothing is wrong, but something is still missing."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found out about a team."""

    team: str
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return all(f.ok for f in self.findings)

    @property
    def wrong(self) -> list[Finding]:
        """What is wrong."""
        return [f for f in self.findings if not f.ok]

    @property
    def missing(self) -> list[Finding]:
        """What is still to be done."""
        return [f for f in self.findings if f.todo]

    def __str__(self) -> str:
        width = max((len(f.check) for f in self.findings), default=0)
        lines = [_line(f, width) for f in self.findings]
        verdict = "all is well" if self.ok else _many(len(self.wrong), "problem")
        rest = f", {_many(len(self.missing), 'thing')} still to do" if self.missing else ""
        return "\n".join([f"team {self.team}: {verdict}{rest}", *lines])


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _line(finding: Finding, width: int) -> str:
    word = "TODO" if finding.todo else "ok" if finding.ok else "WRONG"
    where = f"{finding.where}: " if finding.where else ""
    remedy = f"\n{'':{width + 9}}-> {finding.remedy}" if finding.remedy and word != "ok" else ""
    return f"  {word:<5}  {finding.check:<{width}}  {where}{finding.message}{remedy}"


class Fail(RepertoryError):
    """The user's code raised in the middle of a check: what it was doing, what came out, and where."""

    def __init__(self, doing: str, cause: str, where: str) -> None:
        super().__init__(doing, cause, where)
        self.doing, self.cause, self.where = doing, cause, where


def calling(doing: str, function: Callable[[], T]) -> T:
    """Run the user's code; whatever it raises becomes a Fail that names file and line. An earlier Fail stands."""
    try:
        return function()
    except Fail:
        raise
    except (Exception, SystemExit) as error:
        raise Fail(doing, f"{type(error).__name__}: {error}", place_of(error)) from error


def place_of(error: BaseException) -> str:
    """The last line outside the engine that an exception came through: the user's own where there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if Path(f.filename).parent not in _ENGINE]
    own = [f for f in outside if "site-packages" not in f.filename and not _standard(f.filename)]
    chosen = (own or outside or list(frames))[-1:]
    return "".join(f"{f.filename}:{f.lineno}" for f in chosen)


def _standard(filename: str) -> bool:
    return filename.startswith(("<", str(Path(traceback.__file__).parent)))


def first_of(found: Iterable[Finding], limit: int = 3) -> Iterator[Finding]:
    """The first findings of a kind, each once: a fault that shows in every episode is told once."""
    told: set[tuple[str, str]] = set()
    for finding in found:
        key = (finding.check, finding.message)
        if key not in told:
            told.add(key)
            yield finding
        if len(told) >= limit:
            return
