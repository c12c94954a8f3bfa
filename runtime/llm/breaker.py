"""A model that keeps failing is left alone for a while; one that says 429 is asked more slowly."""

from dataclasses import dataclass
from random import Random

from runtime.llm.shared import Shared, State
from runtime.seams import Clock

ROW = 5
"""Failures in a row that open the breaker."""
SAMPLE, WINDOW_S, PART = 10, 30, 0.5
"""Or this part of at least so many calls within so many seconds."""
OPEN_S, JITTER = 30.0, 0.2
"""How long it stays open (s), give or take this part, so that processes do not all come back at once."""
PROBES = 3
"""Probes in a row, one at a time, that must go well to close it."""
PROBE_S = 60.0
"""After this long (s) a probe counts as lost with its process: no call takes longer."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Leave to make one call; to be reported afterwards."""

    probe: bool = False


class Breaker:
    """One (provider, model)'s breaker: closed, open, or half open with one probe at a time."""

    def __init__(self, key: str, shared: Shared, clock: Clock, rng: Random) -> None:
        self._key, self._shared, self._clock, self._rng = f"breaker:{key}", shared, clock, rng

    def ask(self) -> Pass | None:
        """Leave to call now, or None while the model is left alone."""
        now = self._clock()
        return self._shared.update(self._key, lambda s: asked(s, now))

    def report(self, leave: Pass, ok: bool) -> None:
        """How the call went."""
        now, stay = self._clock(), OPEN_S * (1 + JITTER * self._rng.uniform(-1, 1))
        self._shared.update(self._key, lambda s: (reported(s, leave, ok, now, now + stay), None))

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open``."""
        now = self._clock()

        def look(state: State) -> tuple[State, str]:
            if "open_until" not in state:
                return state, "closed"
            return state, "open" if now < state["open_until"] else "half_open"

        return self._shared.update(self._key, look)


def asked(state: State, now: float) -> tuple[State, Pass | None]:
    """Whether a call may be made, and the state after it was asked for."""
    if "open_until" not in state:
        return state, Pass()
    if now < max(state["open_until"], state.get("probe_until", 0.0)):
        return state, None
    return {**state, "probe_until": now + PROBE_S}, Pass(probe=True)


def reported(state: State, leave: Pass, ok: bool, now: float, until: float) -> State:
    """The state after a call. ``until``: when an open breaker would next take a probe."""
    if "open_until" in state:
        return _probed(state, ok, until) if leave.probe else state  # one that began before it opened says nothing new
    row = 0 if ok else state.get("row", 0) + 1
    calls = _counted(state.get("calls", {}), ok, now)
    good, bad = (sum(c[i] for c in calls.values()) for i in (0, 1))
    if row >= ROW or (good + bad >= SAMPLE and bad >= PART * (good + bad)):
        return {"open_until": until, "probes": 0}
    return {"row": row, "calls": calls}


def _probed(state: State, ok: bool, until: float) -> State:
    if not ok:
        return {"open_until": until, "probes": 0}
    probes = state["probes"] + 1
    return {} if probes >= PROBES else {"open_until": state["open_until"], "probes": probes}


def _counted(calls: dict[str, list[int]], ok: bool, now: float) -> dict[str, list[int]]:
    """[good, bad] by second, of the last ``WINDOW_S``."""
    second = int(now)
    kept = {k: v for k, v in calls.items() if int(k) > second - WINDOW_S}
    good, bad = kept.get(str(second), [0, 0])
    kept[str(second)] = [good + ok, bad + (not ok)]
    return kept


FIRST_GAP_S, LONGEST_GAP_S = 0.1, 2.0
"""Seconds between two calls after the first 429 while there was no limit, and at most."""
SLOWER, FASTER = 2.0, 0.9
"""What a 429 and what an answer multiplies the gap by."""
FREE_S = 0.02
"""A gap shorter than this (s) is none."""


class Pace:
    """One (provider, model)'s rate limit: calls keep a distance that 429 widens and answers narrow."""

    def __init__(self, key: str, shared: Shared, clock: Clock) -> None:
        self._key, self._shared, self._clock = f"pace:{key}", shared, clock

    def wait(self, longest_s: float) -> float | None:
        """Take the next turn: seconds to wait for it. None, and no turn taken, where that is longer than allowed."""
        now = self._clock()

        def take(state: State) -> tuple[State, float | None]:
            turn = max(now, state.get("next", 0.0))
            if turn - now > longest_s:
                return state, None
            return {**state, "next": turn + state.get("gap", 0.0)}, turn - now

        return self._shared.update(self._key, take)

    def slow(self, retry_after_s: float | None) -> None:
        """The model said 429: nobody calls before the time it gave, and then less often."""
        now = self._clock()

        def widen(state: State) -> tuple[State, None]:
            gap = min(max(state.get("gap", 0.0) * SLOWER, FIRST_GAP_S), LONGEST_GAP_S)
            return {"gap": gap, "next": max(state.get("next", 0.0), now + (retry_after_s or gap))}, None

        self._shared.update(self._key, widen)

    def answered(self) -> None:
        """The model answered: a little faster again."""

        def narrow(state: State) -> tuple[State, None]:
            gap = state.get("gap", 0.0) * FASTER
            return ({**state, "gap": gap} if gap >= FREE_S else {}), None

        self._shared.update(self._key, narrow)
