"""What a handler is given: the event, its role's state, and a place for all that shall be committed with it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from runtime.bus.contracts import Agreements
from runtime.bus.errors import NoSuchRole
from runtime.bus.event import Event, derived_id
from runtime.bus.names import Names
from runtime.records import Json, Record
from runtime.seams import Clock
from runtime.store.snapshots import Snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Timer:
    """An event that shall be published later, once or again and again."""

    key: str
    """Its name in the team: scheduling it again moves it, ``cancel`` takes it back."""
    event: Event
    due: float
    """Unix time, s."""
    every_s: float = 0.0
    """The pause until it comes again (s); 0: it comes once."""


@dataclass(slots=True)
class Effects:
    """What a handler wants committed, in one transaction, with the note that its event was had."""

    kept: bool = False
    state: Json = None
    schema: int = 1
    """The version of the state's form."""
    sends: list[Event] = field(default_factory=list[Event])
    records: list[Record] = field(default_factory=list[Record])
    timers: list[Timer] = field(default_factory=list[Timer])
    cancels: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """What a reader's deliveries have in common."""

    names: Names
    group: str
    load: Callable[[str], Snapshot | None]
    """The last committed state in a session."""
    agreed: Agreements
    now: Clock


class Delivery:
    """One event at one reader. Everything put into it is committed together after the handler has returned."""

    def __init__(self, event: Event, attempt: int, desk: Desk) -> None:
        self.event = event
        self.group = desk.group
        self.attempt = attempt
        """1 at the first try."""
        self.effects = Effects()
        self.read: Snapshot | None = None
        """The snapshot that was read, if one was: the commit fails when it is no longer the newest."""
        self.looked = False
        self._desk = desk

    @property
    def again(self) -> bool:
        """Whether the event may have been handled before, without success or without commit."""
        return self.attempt > 1

    @property
    def key(self) -> str:
        """The idempotency key for outside effects: the same whenever this event is handled by this group."""
        return f"{self.event.event_id}/{self.group}"

    @property
    def session(self) -> str:
        """The session that the event belongs to."""
        return self.event.correlation_id

    def snapshot(self) -> Snapshot | None:
        """The last committed state of (role, session) with its schema version; None: there is none yet."""
        if not self.looked:
            self.read, self.looked = self._desk.load(self.session), True
        return self.read

    def state(self) -> Json:
        """The last committed state of (role, session), what this handler kept included; None: there is none yet."""
        if self.effects.kept:
            return self.effects.state
        found = self.snapshot()
        return found.state if found else None

    def keep(self, state: Json, *, schema: int = 1) -> None:
        """Make this the state of (role, session).

        Args:
            state: whatever JSON can say.
            schema: the version of its form, so that a later program knows how to read it.
        """
        self.effects.kept, self.effects.state, self.effects.schema = True, state, schema

    def send(self, to: str, payload: Json) -> Event:
        """Send an event in the same session, with the trace of the one handled. Its id is the same at every try.

        Raises:
            ContractBroken: the payload is not what the two roles agreed on. Let it pass: the event handled becomes a
                dead letter at once, since another try would break the contract again.
        """
        event = self._follow(to, payload)
        self.effects.sends.append(event)
        return event

    def send_later(self, to: str, payload: Json, *, delay_s: float, key: str = "") -> Timer:
        """Send an event after a delay (s), surviving restarts, unless ``cancel(key)`` comes first."""
        event = self._follow(to, payload)
        timer = Timer(key=key or event.event_id, event=event, due=self._desk.now() + delay_s)
        self.effects.timers.append(timer)
        return timer

    def cancel(self, key: str) -> None:
        """Take a scheduled event back; one that has already been sent, or was never scheduled, is no error."""
        self.effects.cancels.append(key)

    def record(self, record: Record) -> None:
        """Write a record into the history."""
        self.effects.records.append(record)

    def _follow(self, to: str, payload: Json) -> Event:
        count = len(self.effects.sends) + len(self.effects.timers)
        if to not in self._desk.names.roles:
            raise NoSuchRole(self._desk.names.team, to, self._desk.names.roles)
        event = replace(
            self.event,
            event_id=derived_id(self.event.event_id, self.group, count),
            sender=self.event.to,
            to=to,
            payload=payload,
            seq=0,
            attempt=1,
            timestamp=0.0,
            contract=0,
        )
        return self._desk.agreed.checked(event)
