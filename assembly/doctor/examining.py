"""All checkups at once, each within its time."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Literal

from runtime.errors import RepertoryError, ServiceUnavailable

State = Literal["ok", "warning", "failed"]
WITHIN_S = 5.0
"""How long a checkup may take that does not say otherwise, and so most files' checkups together, s."""
AGAIN_S = 0.5
"""Pause between two looks at what is not there yet, s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a probe saw."""

    what: str
    state: State = "ok"
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """Something that is declared, and how to see whether it is there."""

    name: str
    """The service, such as ``redis``."""
    declared: str
    """As it stands in the file, without secrets."""
    where: str
    """The file and the line, or what else declares it."""
    probe: Callable[[], Seen]
    """Raises ServiceUnavailable, or any other error of ours, where it is not there."""
    remedy: str = ""
    """What to do where the probe has no answer in time."""
    within_s: float = WITHIN_S
    """How long it may take, s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What came of a checkup."""

    name: str
    declared: str
    where: str
    state: State
    seen: str
    remedy: str
    ms: float
    """How long the look took; for what did not answer, how long it was waited for."""


def examined(checkups: Sequence[Checkup]) -> list[Finding]:
    """Look at everything side by side; what has not answered in its time has failed."""
    looks = [(c, _started(c)) for c in checkups]
    began = time.monotonic()
    found: list[Finding] = []
    for checkup, look in looks:
        wait([look], timeout=max(0.0, checkup.within_s - (time.monotonic() - began)))
        found.append(_outcome(checkup, look))
    return found


def _started(checkup: Checkup) -> "Future[tuple[Seen, float]]":
    """Look in a thread that keeps nobody from ending: a name server may be silent for minutes."""
    look: Future[tuple[Seen, float]] = Future()

    def run() -> None:
        try:
            look.set_result(_look(checkup))
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            look.set_exception(error)

    threading.Thread(target=run, name=f"doctor {checkup.name}", daemon=True).start()
    return look


def waited_for(checkups: Sequence[Checkup], wait_s: float, say: Callable[[str], None]) -> list[Finding]:
    """Look again at what has failed, until all is there or the time is up (s). What is waited for is said once."""
    deadline, pause, said = time.monotonic() + wait_s, threading.Event(), False
    found = dict(zip(checkups, examined(checkups), strict=True))
    while (missing := [c for c, f in found.items() if f.state == "failed"]) and time.monotonic() < deadline:
        if not said:
            say(f"waiting up to {wait_s:g} s for {', '.join(c.name for c in missing)}")
            said = True
        pause.wait(AGAIN_S)
        found |= dict(zip(missing, examined(missing), strict=True))
    return list(found.values())


def failures(findings: Sequence[Finding]) -> list[Finding]:
    """Those that keep the command from going on."""
    return [f for f in findings if f.state == "failed"]


def _look(checkup: Checkup) -> tuple[Seen, float]:
    began = time.monotonic()
    try:
        seen = checkup.probe()
    except ServiceUnavailable as error:
        seen = Seen(what=error.seen, state="failed", remedy=error.remedy)
    except (RepertoryError, OSError, ValueError) as error:
        seen = Seen(what=f"{error}" or type(error).__name__, state="failed", remedy=checkup.remedy)
    return seen, (time.monotonic() - began) * 1000


def _outcome(checkup: Checkup, look: "Future[tuple[Seen, float]]") -> Finding:
    late = Seen(what=f"gives no answer within {checkup.within_s:g} s", state="failed", remedy=checkup.remedy)
    seen, ms = look.result() if look.done() else (late, checkup.within_s * 1000)
    return Finding(
        name=checkup.name,
        declared=checkup.declared,
        where=checkup.where,
        state=seen.state,
        seen=seen.what,
        remedy=seen.remedy,
        ms=round(ms, 1),
    )
