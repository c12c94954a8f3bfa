"""A team on stage: sessions opened over the bus, played by role processes, their ends heard."""

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

from assembly.live import CLIENT, USUAL, LiveRole, Manner, opening
from assembly.versions import Version, load_version
from runtime.bus import BusSettings, Consumer, Delivery, Event, EventBus, Reading
from runtime.embedded import SCHEME, serve
from runtime.errors import RepertoryError
from runtime.records import AnyRecord, Record, Rewarded
from runtime.store import history
from runtime.store.base import Store
from runtime.types import AgentId, Scenario

ROLE_GROUP = "role"
"""The group of a role's own reader."""
WINDOW = 256
"""Sessions that are open at once, unless more are asked for."""


class Unfinished(RepertoryError):
    """Sessions did not end in time: which, and what lies among the dead letters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a team runs."""

    redis: str
    """``embedded:DIRECTORY``, ``redis://…``, ``rediss://…`` or ``unix://…``."""
    store: str
    """``sqlite:///…`` or ``postgresql://…``."""

    @classmethod
    def under(cls, directory: Path, redis: str = "embedded", store: str | None = None) -> Self:
        """The bundled server and a SQLite file in a directory, unless others are named."""
        directory.mkdir(parents=True, exist_ok=True)
        return cls(
            redis=f"embedded:{directory / 'redis'}" if redis == "embedded" else redis,
            store=store or f"sqlite:///{(directory / 'store.db').resolve()}",
        )


def open_bus(place: Place, version: Version, settings: BusSettings | None = None) -> EventBus:
    """The team's bus, with the client as one of its roles."""
    roles = [*(r.name for r in version.team.roles), CLIENT]
    return EventBus(place.redis, place.store, team=version.team.name, roles=roles, settings=settings)


def committed(bus: EventBus) -> Callable[[str], list[AnyRecord]]:
    """Reads a session's records from the bus' store."""
    store = cast("Store", bus.store)
    return lambda session: store.read(lambda c: history.of_session(c, bus.team, session))


class RoleHost:
    """One role of a version, hosted by this process: a reader of the role's stream, and the version's policy.

    Args:
        place: where the team runs.
        directory: the version's export.
        role: which role.
        manner: how it is played.
    """

    def __init__(self, place: Place, directory: Path, role: AgentId, manner: Manner = USUAL) -> None:
        version = load_version(directory)
        self._bus = open_bus(place, version)
        self._bus.start(keep=False)
        owner = self._bus.own(role)
        live = LiveRole(version, role, committed(self._bus), manner)
        self._reader: Consumer = self._bus.consumer(ROLE_GROUP, role, f"{role}-0", live, Reading(owner=owner))
        self._reader.start()

    @property
    def counts(self) -> Mapping[str, int]:
        """What it has done since it began."""
        return self._reader.counts

    @property
    def failure(self) -> Exception | None:
        """What ended its reader: another process became the role's owner."""
        return self._reader.failure

    def close(self) -> None:
        """Stop reading; what was read and not committed comes again elsewhere."""
        self._bus.stop()


@dataclass
class Ended:
    """A session that is over."""

    session: str
    scenario: str
    success: bool
    outcome: Mapping[str, Any]


@dataclass
class _Waiting:
    """Sessions that have been opened and have not ended."""

    open: dict[str, str] = field(default_factory=dict[str, str])
    """Scenario ids by session."""
    ended: list[Ended] = field(default_factory=list[Ended])
    changed: threading.Condition = field(default_factory=threading.Condition)

    def hear(self, delivery: Delivery) -> None:
        """The end of a session."""
        payload: dict[str, Any] = delivery.event.payload
        with self.changed:
            scenario = self.open.pop(delivery.session, None)
            if scenario is not None:
                self.ended.append(Ended(delivery.session, scenario, payload["success"], payload["outcome"]))
                self.changed.notify_all()


class Stage:
    """Opens sessions and hears their ends. Roles must be hosted somewhere (``RoleHost``).

    Args:
        place: where the team runs.
        version: what plays.
    """

    def __init__(self, place: Place, version: Version) -> None:
        self.version = version
        self._waiting = _Waiting()
        self._closing = ExitStack()
        if place.redis.startswith(SCHEME):
            self._closing.enter_context(serve(place.redis.removeprefix(SCHEME)))
        self.bus = open_bus(place, version)

    def __enter__(self) -> Self:
        self.bus.register(ROLE_GROUP)
        self.bus.start()
        self._closing.callback(self.bus.stop)
        heard = self.bus.consumer(ROLE_GROUP, CLIENT, f"client-{uuid.uuid4().hex[:8]}", self._waiting.hear)
        heard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def open(self, scenario: Scenario, session: str = "") -> str:
        """Open a session; returns its id, which is its correlation id."""
        name = session or uuid.uuid4().hex
        with self._waiting.changed:
            self._waiting.open[name] = scenario.id
        first = self.version.team.turns.order[0]
        self.bus.publish(Event(to=first, sender=CLIENT, correlation_id=name, payload=opening(scenario)))
        return name

    def run(self, scenarios: Iterable[Scenario], *, window: int = WINDOW, silence_s: float = 60.0) -> Iterator[Ended]:
        """Play scenarios, so many at once, and yield each as it ends.

        Raises:
            Unfinished: no session has ended for that long (s), though some are open.
        """
        left = iter(scenarios)
        more = True
        while more or self._waiting.open or self._waiting.ended:
            while more and len(self._waiting.open) < window:
                scenario = next(left, None)
                more = scenario is not None
                if scenario is not None:
                    self.open(scenario)
            yield from self._ended(silence_s)

    def _ended(self, silence_s: float) -> list[Ended]:
        waiting = self._waiting
        with waiting.changed:
            if not waiting.changed.wait_for(lambda: waiting.ended or not waiting.open, timeout=silence_s):
                letters = [f"{d.event_id}: {d.reason}" for d in self.bus.dead_letters()]
                raise Unfinished(
                    f"{len(waiting.open)} sessions did not end, the first is {next(iter(waiting.open))}; "
                    f"dead letters: {'; '.join(letters[:5]) or 'none'}"
                )
            done, waiting.ended = waiting.ended, []
        return done

    def records(self, session: str) -> list[AnyRecord]:
        """Everything on record of a session."""
        return committed(self.bus)(session)


def paid(records: Iterable[Record]) -> float | None:
    """What a session's records were paid in all; None where a reward is missing."""
    values = [r.value for r in records if isinstance(r, Rewarded)]
    return None if any(v is None for v in values) else sum(v for v in values if v is not None)
