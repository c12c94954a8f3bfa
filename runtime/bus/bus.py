"""The event bus of a team, as its users see it."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from redis.exceptions import RedisError
from sqlalchemy.engine import Connection

from runtime.bus import letters, stats
from runtime.bus.accept import accept, row_of, scheduled
from runtime.bus.commit import Seat
from runtime.bus.consumer import Consumer, Reading
from runtime.bus.contracts import Agreements, check_fit
from runtime.bus.delivery import Timer
from runtime.bus.errors import ContractBroken, NoSuchRole
from runtime.bus.event import Event, prepared
from runtime.bus.gate import Gate
from runtime.bus.intake import Intake, ensure_group
from runtime.bus.keeper import Keeper
from runtime.bus.names import Names, owner
from runtime.bus.parts import Parts
from runtime.bus.refill import refill
from runtime.bus.relay import Relay, append
from runtime.bus.settings import BusSettings
from runtime.bus.work import Handler
from runtime.embedded.client import connect
from runtime.records import Json
from runtime.store import inbox, owners, snapshots, timers
from runtime.store.base import Store
from runtime.store.dead import DeadLetter
from runtime.store.outbox import Row
from runtime.store.owners import Owner
from runtime.store.snapshots import Saving, Snapshot
from runtime.store.store import open_store

SWITCH_S = 0.0005
"""How long one Python thread may hold up the others (s). With Python's own 5 ms, a thread that computes delays the
store's writer, the relay and the reader by that much at each of their steps."""
UNSAFE = "this bus has no store: it keeps no state"


class EventBus:
    """Events between the roles of a team: at-least-once over Redis Streams, effects exactly once through the store.

    Args:
        redis: ``embedded:DIRECTORY``, ``redis://…``, ``rediss://…`` or ``unix://…``.
        store: an open store, or its URL, which the bus then opens and closes. None: none, for measuring, and for events
            that may be lost with Redis and come twice.
        team: the team's name; all of its processes use the same.
        roles: whoever gets events.
        agreed: what roles have agreed to say to each other.
        settings: leases, limits, ages; the same in all processes.

    Raises:
        ServiceUnavailable: Redis or the store is missing, too old, or its clock is off.
        Misfit: what a role sends is not what another one takes.
    """

    def __init__(
        self,
        redis: str,
        store: Store | str | None,
        *,
        team: str,
        roles: Sequence[str],
        agreed: Agreements | None = None,
        settings: BusSettings | None = None,
    ) -> None:
        settings, agreed = settings or BusSettings(), agreed or Agreements()
        names = Names(team, tuple(roles), settings.shards)
        check_fit(team, agreed)
        self._owns_store = isinstance(store, str)
        self._parts = Parts(
            redis=redis,
            client=connect(redis, now=settings.now),
            store=open_store(store) if isinstance(store, str) else store,
            names=names,
            settings=settings,
            agreed=agreed,
            now=settings.now,
        )
        self._relay = Relay(self._parts) if self._parts.store else None
        self._keeper = Keeper(self._parts, self._relay) if self._relay else None
        self._gate = Gate(self._parts)
        self._consumers: list[Consumer] = []
        refill(self._parts)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def team(self) -> str:
        """The team's name."""
        return self._parts.team

    @property
    def store(self) -> Store | None:
        """Where states, records and accepted events are kept."""
        return self._parts.store

    def start(self, *, keep: bool = True) -> None:
        """Begin to send what is published, and to take part in the team's upkeep unless ``keep`` is false."""
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        if self._relay:
            self._relay.start()
        if self._keeper and keep:
            self._keeper.start()

    def stop(self) -> None:
        """Stop the readers, send what waits as far as Redis answers, and close. What is left is not lost."""
        for consumer in self._consumers:
            consumer.leave()
        for consumer in self._consumers:
            consumer.stop()
        if self._keeper:
            self._keeper.stop()
        if self._relay:
            self._relay.stop()
        self._parts.closing.set()
        if self._owns_store and self._parts.store:
            self._parts.store.close()
        self._parts.client.close()

    def publish(self, event: Event, *, state: Json = None, owner: Owner | None = None) -> Event:
        """Publish an event; see ``publish_all``."""
        return self.publish_all([event], state=state, owner=owner)[0]

    def publish_all(self, events: Sequence[Event], *, state: Json = None, owner: Owner | None = None) -> list[Event]:
        """Publish events, all or none. When this returns they are accepted, and are not lost.

        Args:
            events: what is left empty in them is filled in; ``seq`` is given out here.
            state: becomes the state of (sender, session) of the first event, in the same transaction. None: no change.
            owner: the ownership under which this is written.

        Returns:
            The events with their ids. Their ``seq`` is on the stream.

        Raises:
            Fenced: somebody else is the owner by now; nothing was published.
            Overloaded: readers are too far behind, and stayed so; nothing was published.
            ContractBroken: a payload is not what the roles agreed on; that event is a dead letter, none was published.
            NoSuchRole: the team has no role of that name.
        """
        ready = self._ready(events)
        if self._relay is None:
            if state is not None or owner:
                raise ValueError(UNSAFE)
            append(self._parts, [row_of(self._parts, e) for e in ready])
        else:
            self._relay.offer(self._parts.held().write(self._accepting(ready, state, owner)))
        return ready

    def publish_soon(
        self, events: Sequence[Event], *, state: Json = None, owner: Owner | None = None
    ) -> Future[list[Row]]:
        """As ``publish_all``, without waiting for the disk: they are accepted when the future is done, which has what
        ``publish_all`` raises. Several of these in flight are committed together, in their order.
        """
        relay = self._relay
        if relay is None:
            raise ValueError(UNSAFE)
        done = self._parts.held().submit(self._accepting(self._ready(events), state, owner))
        done.add_done_callback(lambda f: None if f.cancelled() or f.exception() else relay.offer(f.result()))
        return done

    def schedule(self, event: Event, *, due: float, every_s: float = 0.0, key: str = "") -> str:
        """Publish an event later, once or again and again, whatever is restarted until then.

        Args:
            event: what to publish.
            due: the first time (Unix time, s).
            every_s: the pause until it comes again (s), times missed left out; 0: it comes once.
            key: a name to move or cancel it by; one is made up if it is empty.

        Returns:
            The key.
        """
        parts, at = self._parts, self._parts.now()
        ready = self._checked(prepared(event, at))
        timer = scheduled(Timer(key=key or ready.event_id, event=ready, due=due, every_s=every_s), at)
        parts.held().write(lambda c: timers.schedule(c, parts.team, [timer]))
        return timer.key

    def cancel(self, key: str) -> bool:
        """Take a scheduled event back; whether there was one."""
        return self._parts.held().write(lambda c: timers.cancel(c, self.team, [key])) > 0

    def own(self, role: str, shard: int = 0) -> Owner:
        """Become the one who writes for a role (or one shard of it); whoever was it before is fenced from now on."""
        name, at = owner(self.team, role, shard), self._parts.now()
        return self._parts.held().write(lambda c: owners.claim(c, name, at))

    def register(self, group: str, roles: Sequence[str] = ()) -> None:
        """Make a group known, for some roles or all, before anything is published: events are kept for it."""
        for role in roles or self._parts.names.roles:
            self._note_group(group, role)
            for stream in self._parts.names.streams(role):
                ensure_group(self._parts.client, stream, group)

    def unregister(self, group: str, role: str) -> None:
        """A group that will never read again: nothing is kept for it any more."""
        parts = self._parts
        parts.held().write(lambda c: inbox.unregister(c, parts.team, role, group))
        for stream in parts.names.streams(role):
            parts.client.execute_command("XGROUP", "DESTROY", stream, group)

    def consumer(self, group: str, role: str, name: str, handler: Handler, reading: Reading | None = None) -> Consumer:
        """A reader of a role's events.

        Args:
            group: ``role`` for the role itself, another purpose for who reads along, such as ``recorder``.
            role: whose events.
            name: the reader's name in its group: the same after a restart, so that it gets back what it left undone.
            handler: called for each event, one at a time; what it puts into the delivery is committed with the event.
            reading: ownership and shard.
        """
        reading = reading or Reading()
        with contextlib.suppress(RedisError, OSError):  # then the reader makes its group, when Redis is back
            self.register(group, [role])
        seat = Seat(role=role, group=group, owner=reading.owner)
        intake = Intake(self._parts, self._parts.names.shard(role, reading.shard), group, name)
        made = Consumer(self._parts, self._relay, seat, intake, handler)
        self._consumers.append(made)
        return made

    def state(self, role: str, session: str) -> Snapshot | None:
        """The last committed state of a role in a session; None: there is none."""
        return self._parts.held().read(lambda c: snapshots.load(c, self.team, role, session))

    def keep(self) -> bool:
        """Do one round of the team's upkeep now; False when another process is at it."""
        if self._keeper is None:
            raise ValueError(UNSAFE)
        return self._keeper.round()

    def dead_letters(self) -> list[DeadLetter]:
        """Events that were given up, oldest first."""
        return letters.letters(self._parts)

    def replay(self, event_id: str, group: str = "") -> int:
        """Let the group that gave an event up have it once more; how many groups get it."""
        return letters.replay(self._parts, event_id, group)

    def stats(self) -> dict[str, Any]:
        """How the bus is doing, by stream where that differs; see docs/bus.md."""
        return stats.stats(self._parts)

    def _ready(self, events: Sequence[Event]) -> list[Event]:
        """The events with ids and time, checked, as soon as there is room for them."""
        at = self._parts.now()
        ready = [self._checked(prepared(e, at)) for e in events]
        self._gate.wait(len(ready))
        return ready

    def _accepting(self, ready: Sequence[Event], state: Json, owner: Owner | None) -> Callable[[Connection], list[Row]]:
        """The transaction that accepts events: fence, state, numbers, outbox."""
        parts = self._parts

        def work(connection: Connection) -> list[Row]:
            at = parts.now()
            if owner and parts.settings.safety.fencing:
                owners.check(connection, owner)
            if state is not None:
                first, epoch = ready[0], owner.epoch if owner else 0
                saving = Saving(
                    team=parts.team, role=first.sender, session=first.correlation_id, state=state, epoch=epoch
                )
                snapshots.save(connection, [saving], at)
            return accept(connection, parts, ready, at)

        return work

    def _checked(self, event: Event) -> Event:
        self._known(event.to)
        try:
            return self._parts.agreed.checked(event)
        except ContractBroken as error:
            letters.refuse(self._parts, event, str(error))
            raise

    def _note_group(self, group: str, role: str) -> None:
        self._known(role)
        if self._parts.store:
            self._parts.store.write(lambda c: inbox.register(c, self.team, role, group))

    def _known(self, role: str) -> None:
        if role not in self._parts.names.roles:
            raise NoSuchRole(self.team, role, self._parts.names.roles)
