"""One event at one agent: what is kept before and after, and the records of it. The same with and without a bus."""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.actor.behaviour import Behaviour, Outcome
from runtime.actor.faults import Faults
from runtime.actor.kept import Kept
from runtime.bus.event import Event
from runtime.errors import RepertoryError, UserCodeError
from runtime.lifecycle import Life, Lifecycle
from runtime.records import Record
from runtime.seams import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepping:
    """What every step of an agent needs."""

    role: str
    behaviour: Behaviour
    faults: Faults
    clock: Clock
    failed: Callable[[str, list[Record]], None]
    """``failed(session, records)``: the behaviour raised; these records are to be kept all the same."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """An event that the behaviour has dealt with, not committed yet."""

    outcome: Outcome
    life: Life
    records: tuple[Record, ...]


def step(stepping: Stepping, kept: Kept, event: Event) -> Stepped:
    """Have the behaviour deal with an event.

    Raises:
        UserCodeError: the behaviour raised; the agent is in error until its next event.
    """
    records: list[Record] = []
    life = Lifecycle(stepping.role, event.correlation_id, records.append, state=kept.life, clock=stepping.clock)
    if kept.life == "error":
        life.go("recover")
    if kept.life == "running":  # no process leaves it so: it is only written between two events
        life.go("rest")
    life.go("work")
    stepping.faults.at("before_handle")
    try:
        outcome = stepping.behaviour.handle(kept.state, event)
    except (Exception, SystemExit) as error:  # Ray takes sys.exit in an agent for the agent's wish to end
        life.go("fail")
        stepping.failed(event.correlation_id, records)
        if isinstance(error, RepertoryError):
            raise
        raise UserCodeError(
            f"{stepping.role} handling event {event.event_id}", f"{type(error).__name__}: {error}"
        ) from error
    stepping.faults.at("after_handle")
    life.go("wait" if outcome.awaiting else "rest")
    return Stepped(outcome, life.state, (*outcome.records, *records))
