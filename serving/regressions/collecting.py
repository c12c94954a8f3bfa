"""Which recorded sessions become cases: those that are named, the worst paid, those that somebody complained about."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from assembly.cases import Case, read_cases, write_cases
from assembly.paid import paid_in
from runtime.recorded import RecordedSession


@dataclass(frozen=True, slots=True)
class Added:
    """What became of sessions that were to be added."""

    added: list[Case]
    known: list[str]
    """Sessions that the file had already."""


def reward_of(session: RecordedSession) -> float | None:
    """What a session is judged by: what somebody said of it, else what the team's own terms paid; None: neither."""
    if session.reward is not None:
        return session.reward
    values = list(paid_in(session.told()).values())
    return None if not values or None in values else sum(v for v in values if v is not None)


def worst(sessions: Iterable[RecordedSession], count: int) -> list[RecordedSession]:
    """The so many sessions with the lowest reward, the lowest first; those without any are left out."""
    rewarded = ((reward, s.session, s) for s in sessions if (reward := reward_of(s)) is not None)
    return [s for _, _, s in nsmallest(count, rewarded, key=lambda each: each[:2])]


def complaints(sessions: Iterable[RecordedSession], below: float) -> Iterator[RecordedSession]:
    """Sessions of which somebody said less than that."""
    return (s for s in sessions if s.reward is not None and s.reward < below)


def added(file: Path, sessions: Iterable[RecordedSession], why: str) -> Added:
    """Put sessions into a file of cases, which is made where there is none; each once.

    Raises:
        TeamError: the file is there and holds something else.
    """
    cases = read_cases(file) if file.exists() else []
    known = {case.session.session for case in cases}
    result = Added([], [])
    for session in sessions:
        if session.session in known:
            result.known.append(session.session)
            continue
        known.add(session.session)
        result.added.append(Case(name=session.session, why=why or _told(session), session=session))
    if result.added:
        write_cases(file, [*cases, *result.added])
    return result


def _told(session: RecordedSession) -> str:
    """Why a session is kept, where nobody says."""
    if session.reward is not None:
        return f"somebody said {session.reward:g} of it"
    if (reward := reward_of(session)) is not None:
        return f"it was paid {reward:g}"
    return "it ended well, and was paid nothing that is known" if session.success else "it did not end well"
