"""Mistakes that a term's own code meets and catches while it pays a number: watched line by line.

Not each of them is a fault. To try and to catch is how many a lookup is written: a price that is in no table, a record
that has no tool. It is told apart by whether the attempt ever works, and by who raised it.
"""

import dis
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, get_args

from rewards.deadline import called
from rewards.mix import PastView, Weighted, number
from rewards.readonly import NotThere
from runtime import records

_OURS = str(Path(__file__).parent.parent)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})

ALWAYS = (NameError, OSError)
"""Say nothing about what an agent did, whenever they are met (a time limit that is up is an ``OSError``)."""
TRIED = (KeyError, TypeError, AttributeError)
"""May be a lookup that was tried. A ``ValueError``, ``IndexError`` or ``ZeroDivisionError`` is about what was done: an
answer that is no number is wrong, and of nothing there is no share."""
FEWEST = 3
"""Attempts from which can be said that none works."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was raised and caught, and where."""

    fault: str
    line: str
    """``file:line``."""
    times: int = 1
    reached: int = 1
    """How often the line was run."""

    def __str__(self) -> str:
        return f"{self.fault} at {self.line}"


class Watched:
    """Judgements of one term, and the mistakes met in those that ended in a number."""

    def __init__(self, weighted: Weighted) -> None:
        self._weighted = weighted
        self._reached: Counter[Place] = Counter()
        self._met: Counter[tuple[Place, str, bool]] = Counter()
        self.surely: list[Mistake] = []
        """In the last judgement: those that are faults by themselves."""

    def judge(self, view: PastView) -> None:
        """Judge a view, line by line. What ends in no number is missing, as it should be, and does not count."""
        run = _Run()
        self.surely = []
        if not run.judge(self._weighted, view):
            return
        self._reached.update(run.reached)
        for place, fault, harmless, sure in run.met:
            if sure:
                self.surely.append(Mistake(fault, _line(place)))
            else:
                self._met[place, fault, harmless] += 1

    def never_working(self) -> Iterator[Mistake]:
        """Attempts that failed each time."""
        for (place, fault, harmless), times in self._met.items():
            if not harmless and FEWEST <= times >= self._reached[place]:
                yield Mistake(fault, _line(place), times, self._reached[place])

    def now_and_then(self) -> Iterator[Mistake]:
        """Attempts that failed sometimes, on values of a kind that the code does not expect."""
        for (place, fault, harmless), times in self._met.items():
            if not harmless and fault != "KeyError" and times < self._reached[place]:
                yield Mistake(fault, _line(place), times, self._reached[place])


class _Run:
    """One judgement, traced."""

    def __init__(self) -> None:
        self.reached: Counter[Place] = Counter()
        self.met: list[tuple[Place, str, bool, bool]] = []
        """Place, fault, harmless, sure."""

    def judge(self, weighted: Weighted, view: PastView) -> bool:
        """Whether it ended in a number. A term with a time limit runs in a thread, which is traced as well."""
        before, before_threads = sys.gettrace(), threading.gettrace()
        threading.settrace(self._entering)  # pyright: ignore[reportArgumentType] - None: a frame is not traced
        sys.settrace(self._entering)
        try:
            number(called(weighted.term, view))
        except Exception:  # noqa: BLE001 - the user's term
            return False
        finally:
            sys.settrace(before)
            threading.settrace(before_threads)  # pyright: ignore[reportArgumentType] - None is what is there without
        return True

    def _entering(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._within if _is_users(frame.f_code.co_filename) else None

    def _within(self, frame: FrameType, event: str, arg: Any) -> Any:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line":
            self.reached[place] += 1
        elif event == "exception" and issubclass(arg[0], (*ALWAYS, *TRIED)):
            sure = issubclass(arg[0], ALWAYS) or _raised_here(frame, arg[2])
            self.met.append((place, _named(arg[0]), _harmless(arg[1]), sure))
        return self._within


def _named(fault: type[BaseException]) -> str:
    return "KeyError" if issubclass(fault, KeyError) else fault.__name__


def _raised_here(frame: FrameType, traceback: Any) -> bool:
    """Whether the frame's own ``raise`` did it."""
    if traceback is None or traceback.tb_next is not None:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "RAISE_VARARGS"


def _harmless(fault: Any) -> bool:
    """A key that some table of the term's own does not have, or a field that records of another kind have."""
    if isinstance(fault, KeyError):
        return not isinstance(fault, NotThere)
    return isinstance(fault, AttributeError) and isinstance(fault.obj, records.Record) and fault.name in _fields()


@cache
def _fields() -> frozenset[str]:
    """Everything that some record has."""
    union = get_args(records.AnyRecord)[0]
    return frozenset(name for kind in get_args(union) for name in (*kind.model_fields, "decision_id"))


def _line(place: Place) -> str:
    return f"{place[0]}:{place[1]}"


def _is_users(file: str) -> bool:
    return not file.startswith((_OURS, *_LIBRARIES)) and not file.startswith("<")
