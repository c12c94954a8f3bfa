"""What an agent does with an event. The actor around it knows nothing of teams, policies or tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runtime.bus.event import Event
from runtime.records import Json, Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Send:
    """An event for another role, in the same session."""

    to: str
    payload: Json
    delay_s: float = 0.0
    """Later, by so long (s); survives restarts."""
    key: str = ""
    """By which a later one can be cancelled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of an event. All of it is committed together, or none."""

    state: Json
    """The agent's new state in the session."""
    sends: tuple[Send, ...] = ()
    records: tuple[Record, ...] = ()
    reply: Json = None
    """For a caller that waits."""
    awaiting: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What the agent now waits for from outside, such as jobs under way, by handle: kept with the state."""
    cancels: tuple[str, ...] = ()
    """Keys of delayed events that are not to be sent."""


class Behaviour(Protocol):
    """An agent without its surroundings. One instance serves all sessions, one event at a time."""

    @property
    def schema(self) -> int:
        """The version of the state's form."""
        ...

    def handle(self, state: Json, event: Event) -> Outcome:
        """Deal with an event. ``state`` is None in a new session. Called again for an event whose commit was lost."""
        ...


class Migrating(Protocol):
    """A behaviour that can read states of older forms."""

    def migrate(self, state: Json, schema: int) -> Json:
        """The state in today's form."""
        ...


class Resuming(Protocol):
    """A behaviour that waits for things outside, and takes them up again after its process has ended."""

    def resume(self, session: str, awaiting: Mapping[str, Json]) -> Sequence[Event]:
        """Events for itself, about what it waits for in the session. Called once a start for each such session."""
        ...
