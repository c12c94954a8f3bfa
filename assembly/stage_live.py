"""A team on stage: sessions opened over the bus, played by role processes, their ends heard."""

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Self, cast

from assembly.fit import agreements
from assembly.giving_up import given_up
from assembly.live import CLIENT, USUAL, LiveRole, Manner, opening
from assembly.versions import Version, load_version
from assembly.watching import watch_agent
from runtime.actor.spec import AgentSpec, BusSpec, reference
from runtime.bus import BusSettings, Delivery, Event, EventBus
from runtime.embedded import SCHEME, serve
from runtime.errors import RepertoryError
from runtime.facts import FactBoard
from runtime.records import AnyRecord, Record, Rewarded
from runtime.store import history, open_store
from runtime.store.base import Store
from runtime.tracing import root
from runtime.types import AgentId, Scenario
from telemetry.watched import Watched

ROLE_GROUP = "role"
"""The group of a role's own reader."""
LOOK_S = 1.0
"""Pause between two looks for sessions that cannot go on, s."""
WINDOW = 256
"""Sessions that are open at once, unless more are asked for."""


class Unfinished(RepertoryError):
    """Sessions did not end in time: which, and what lies among the dead letters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a team runs."""

    redis: str
    """``embedded:DIRECTORY``, ``redis://…``, ``rediss://…``, ``unix://…``, or the ``env:NAME`` that holds one."""
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
    agreed, redis = agreements(version.team), reference(place.redis)
    return EventBus(redis, place.store, team=version.team.name, roles=roles, agreed=agreed, settings=settings)


def committed(bus: EventBus) -> Callable[[str], list[AnyRecord]]:
    """Reads a session's records from the bus' store."""
    store = cast("Store", bus.store)
    return lambda session: store.read(lambda c: history.of_session(c, bus.team, session))


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveMaker:
    """Makes a role of a version in whatever process it is to live."""

    directory: Path
    """The version's export."""
    role: AgentId
    store: str
    """Where the sessions' records are."""
    manner: Manner = USUAL
    watched: Watched | None = None
    """How its process shows how it is; None: it does not."""

    def __call__(self) -> LiveRole:
        """Load the version and open the store."""
        version, store = load_version(self.directory), open_store(reference(self.store))
        team = version.team.name
        if self.watched is not None:
            watch_agent(self.watched, self.role, version)
        return LiveRole(
            version,
            self.role,
            lambda session: store.read(lambda c: history.of_session(c, team, session)),
            self.manner,
            board=FactBoard(store, team),
        )


def agent_specs(
    place: Place, directory: Path, version: Version, manner: Manner = USUAL, watched: Watched | None = None
) -> dict[AgentId, AgentSpec]:
    """Every role of a version as an agent on the bus."""
    roles = [r.name for r in version.team.roles]
    bus = BusSpec(redis=place.redis, roles=(*roles, CLIENT), agreed=agreements(version.team), keep=False)
    return {
        role: AgentSpec(
            team=version.team.name,
            role=role,
            version=version.name,
            make=LiveMaker(directory=directory.resolve(), role=role, store=place.store, manner=manner, watched=watched),
            store=place.store,
            bus=bus,
        )
        for role in roles
    }


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
        self.end(delivery.session, success=payload["success"], outcome=payload["outcome"])

    def end(self, session: str, *, success: bool, outcome: Mapping[str, Any]) -> None:
        """A session is over; one that was over before, or is not ours, is let pass."""
        with self.changed:
            scenario = self.open.pop(session, None)
            if scenario is not None:
                self.ended.append(Ended(session, scenario, success, outcome))
                self.changed.notify_all()


class Stage:
    """Opens sessions and hears their ends. Roles must live somewhere (``agent_specs``).

    Args:
        place: where the team runs.
        version: what plays.
    """

    def __init__(self, place: Place, version: Version) -> None:
        self.version = version
        self._waiting = _Waiting()
        self._closing = ExitStack()
        redis = reference(place.redis)
        if redis.startswith(SCHEME):
            self._closing.enter_context(serve(redis.removeprefix(SCHEME)))
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
        began = root(name).header
        self.bus.publish(
            Event(to=first, sender=CLIENT, correlation_id=name, payload=opening(scenario), traceparent=began)
        )
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
        waiting, deadline = self._waiting, monotonic() + silence_s
        while True:
            with waiting.changed:
                waiting.changed.wait_for(lambda: waiting.ended or not waiting.open, timeout=LOOK_S)
                if waiting.ended or not waiting.open:
                    done, waiting.ended = waiting.ended, []
                    return done
            for letter in self.bus.dead_letters():
                if letter.fields.get("correlation_id", "") in waiting.open:
                    self.give_up(letter.fields["correlation_id"], letter.reason)
            if monotonic() > deadline:
                first = next(iter(waiting.open), "none any more")
                raise Unfinished(f"{len(waiting.open)} sessions did not end, the first is {first}")

    def give_up(self, session: str, reason: str) -> bool:
        """End a session that cannot go on: what its tools did outside is undone, the last first, and that is recorded.

        Called again after a crash, it goes on where it was. Whether everything could be undone.
        """
        complete = given_up(cast("Store", self.bus.store), self.version.team, session, reason)
        self._waiting.end(session, success=False, outcome={"given_up": reason, "undone": complete})
        return complete

    def records(self, session: str) -> list[AnyRecord]:
        """Everything on record of a session."""
        return committed(self.bus)(session)

    @property
    def dead(self) -> int:
        """How many events were given up."""
        return len(self.bus.dead_letters())


def paid(records: Iterable[Record]) -> float | None:
    """What a session's records were paid in all; None where a reward is missing."""
    values = [r.value for r in records if isinstance(r, Rewarded)]
    return None if any(v is None for v in values) else sum(v for v in values if v is not None)
