"""What an agent is doing in a session: idle, running, waiting or in error. Each change is noted, and each refusal."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from runtime.records import StateChanged
from runtime.seams import Clock, now

if TYPE_CHECKING:
    from transitions import Machine

Life = Literal["idle", "running", "waiting", "error"]
Change = Literal["work", "rest", "wait", "fail", "recover"]
CHANGES: dict[Change, tuple[tuple[Life, ...], Life]] = {
    "work": (("idle", "waiting"), "running"),
    "rest": (("running",), "idle"),
    "wait": (("running",), "waiting"),
    "fail": (("idle", "running", "waiting"), "error"),
    "recover": (("error",), "idle"),
}
"""Each change: from where, and to what. ``wait``: for something from outside, such as another agent's answer."""


@cache
def _machine() -> "Machine":
    from transitions import Machine

    machine = Machine(model=None, states=["idle", "running", "waiting", "error"], auto_transitions=False)
    for name, (sources, target) in CHANGES.items():
        machine.add_transition(name, list(sources), target)
    return machine


class Lifecycle:
    """One agent's life in one session."""

    __slots__ = ("_agent", "_clock", "_note", "_session", "state")

    def __init__(
        self,
        agent: str,
        session: str,
        note: Callable[[StateChanged], None],
        *,
        state: Life = "idle",
        clock: Clock = now,
    ) -> None:
        self.state: Life = state
        self._agent, self._session, self._note, self._clock = agent, session, note, clock

    def go(self, change: Change) -> bool:
        """Make the change and note it; one that is not allowed now is noted as refused and changes nothing."""
        from transitions import MachineError

        before = self.state
        event: Any = _machine().events[change]
        try:
            event.trigger(self)
        except MachineError:
            allowed = " or ".join(CHANGES[change][0])
            self._noted(before, CHANGES[change][1], f"{change} is for an agent that is {allowed}, not {before}")
            return False
        self._noted(before, self.state, "")
        return True

    def _noted(self, before: Life, after: Life, refused: str) -> None:
        self._note(
            StateChanged(
                correlation_id=self._session,
                at=self._clock(),
                agent=self._agent,
                before=before,
                after=after,
                refused=refused,
            )
        )
