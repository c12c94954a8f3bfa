"""The agent as a Ray actor, and its handle: names, deadlines, and asking again after a crash."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from runtime.actor.agent import Agent, Reply
from runtime.actor.errors import AgentLost, DeadlinePassed, NotStarted
from runtime.actor.kept import Kept
from runtime.actor.process import Health
from runtime.actor.spec import AgentSpec
from runtime.bus.event import Event, prepared
from runtime.seams import Clock, now, sleep

if TYPE_CHECKING:
    from runtime.actor.attendant import Attendant

TELL_S = 60.0
"""How long a call may take (s), unless the caller says otherwise: as long as the longest model call."""
HEALTH_S = 2.0
"""How long an agent may take to say how it is (s): it answers in milliseconds, also while it works."""
START_S = 60.0
"""How long a start may take (s): Ray starts an interpreter, which imports much, on a busy machine."""
AGAIN_S = 0.05
"""Pause before a call to an agent that is being restarted is made again (s)."""
NAMESPACE = "repertory"
"""Ray's namespace of all agents."""


def _ray() -> Any:
    """Ray, loaded when the first agent is started."""
    import ray

    return ray


def _lives(spec: AgentSpec) -> "Agent | Attendant":
    if spec.bus is None:
        return Agent(spec)
    from runtime.actor.attendant import Attendant

    return Attendant(spec, spec.bus)


class _Host:
    """What runs in the actor's process."""

    def __init__(self, spec: AgentSpec) -> None:
        self._agent = _lives(spec)

    def tell(self, event: Event, until: float) -> Reply:
        if not isinstance(self._agent, Agent):
            raise TypeError(f"{self._agent.spec.name} lives on the bus: publish the event there")
        return self._agent.tell(event, until)

    def kept(self, session: str) -> Kept:
        return self._agent.kept(session)

    def stop(self) -> None:
        self._agent.stop()

    def health(self) -> Health:
        return self._agent.health()


@cache
def _hosted() -> Any:
    """The class that Ray makes actors of."""
    ray = _ray()
    ray.method(concurrency_group="health")(_Host.health)
    # No task retries: Ray would run an event twice. The caller asks again, and the store says what was done.
    return ray.remote(concurrency_groups={"health": 1}, max_concurrency=1, max_restarts=-1, max_task_retries=0)(_Host)


@dataclass(frozen=True, slots=True)
class AgentActor:
    """An agent in a process of its own, which Ray restarts as often as it dies.

    actor = AgentActor.start(AgentSpec(team="shop", role="clerk", make=Clerk, store="sqlite:///run/store.db"))
    reply = actor.tell(Event(to="clerk", correlation_id="s1", payload={"want": "tea"}), within_s=10)
    actor.stop()
    """

    spec: AgentSpec
    handle: Any
    """Ray's own."""

    @classmethod
    def start(cls, spec: AgentSpec, *, within_s: float = START_S) -> Self:
        """Start an agent and wait until it serves; one of that name that lives already is taken over as it is.

        Raises:
            DeadlinePassed: it does not serve in time.
            NotStarted: making it raised.
        """
        options: dict[str, Any] = {"num_cpus": spec.cpus, "lifetime": "detached" if spec.detached else None}
        if spec.env:
            options["runtime_env"] = {"env_vars": dict(spec.env)}
        made: Any = _hosted().options(name=spec.name, namespace=NAMESPACE, get_if_exists=True, **options)
        actor = cls(spec, made.remote(spec))
        try:
            actor._asking(actor.handle.health.remote, "start", within_s, again=True)
        except AgentLost as error:
            raise NotStarted(spec.name, _cause(error)) from None
        return actor

    def tell(self, event: Event, *, within_s: float = TELL_S, clock: Clock = now) -> Reply:
        """Have the agent deal with an event. If its process dies over it, ask again until the time is up.

        Args:
            event: without an id it is given one, which every further attempt carries.
            within_s: how long to wait (s), attempts after a crash included.
            clock: Unix time, s.

        Raises:
            DeadlinePassed: there was no answer in time. Told again with the same event, it is not done twice.
            AgentLost: its process ended over it, and it has no store that would know what was done.
            Fenced, SnapshotRefused, UserCodeError: see ``Agent.tell``.
        """
        event = prepared(event, clock())
        until = clock() + within_s
        return self._asking(lambda: self.handle.tell.remote(event, until), event.event_id, within_s)

    def health(self, *, within_s: float = HEALTH_S) -> Health:
        """How the agent is; it answers also while it works. Raises DeadlinePassed where it does not."""
        return self._asking(self.handle.health.remote, "health", within_s, again=True)

    def kept(self, session: str, *, within_s: float = HEALTH_S) -> Kept:
        """What it keeps of a session; waits for the event at hand."""
        return self._asking(lambda: self.handle.kept.remote(session), "kept", within_s, again=True)

    def stop(self, *, within_s: float = TELL_S) -> None:
        """Have it finish the event at hand and end for good. One that does not come to an end is killed."""
        ray = _ray()
        with suppress(ray.exceptions.GetTimeoutError, ray.exceptions.RayActorError):
            ray.get(self.handle.stop.remote(), timeout=within_s)
        ray.kill(self.handle, no_restart=True)

    def _asking(self, call: Callable[[], Any], event_id: str, within_s: float, *, again: bool = False) -> Any:
        ray = _ray()
        deadline = time.monotonic() + within_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlinePassed(self.spec.name, event_id, f"had no answer within {within_s:g} s")
            try:
                return ray.get(call(), timeout=left)
            except ray.exceptions.GetTimeoutError:
                continue
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else error from None
            except ray.exceptions.RayActorError as error:
                if isinstance(error, ray.exceptions.ActorDiedError):
                    raise AgentLost(self.spec.name, event_id) from error
                if not (again or self.spec.store):
                    raise AgentLost(self.spec.name, event_id) from error
            sleep(min(AGAIN_S, max(deadline - time.monotonic(), 0.0)))


def _cause(error: AgentLost) -> str:
    """The last line of what Ray says about it: what was raised."""
    lines = [line.strip() for line in str(error.__cause__).splitlines() if line.strip()]
    return lines[-1] if lines else "its process ended"


def named(spec: AgentSpec) -> AgentActor | None:
    """The agent of that name, if it lives."""
    ray = _ray()
    try:
        return AgentActor(spec, ray.get_actor(spec.name, namespace=NAMESPACE))
    except ValueError:
        return None
