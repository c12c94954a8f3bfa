"""An agent that lives on the event bus: it reads its role's stream, and what comes of an event is committed with it."""

from threading import Lock

from runtime.actor.behaviour import Outcome
from runtime.actor.kept import Kept, opened
from runtime.actor.process import AgentProcess, Health
from runtime.actor.resuming import resumed
from runtime.actor.spec import AgentSpec, BusSpec, reference
from runtime.actor.step import Stepping, step
from runtime.bus import Delivery, EventBus, Reading
from runtime.errors import Fenced
from runtime.records import Record, Redelivered
from runtime.seams import Clock, now


class Attendant:
    """One agent on the bus. Events are dealt with one at a time; the bus retries, orders, and gives up."""

    def __init__(self, spec: AgentSpec, at: BusSpec, *, clock: Clock = now) -> None:
        self.spec = spec
        self._process = process = AgentProcess(spec, clock)
        self._mailbox = Lock()
        self._stopped = False
        self._in_error: set[str] = set()
        """Sessions whose last event failed, and comes again."""
        self._stepping = Stepping(
            role=spec.role, behaviour=process.behaviour, faults=process.faults, clock=clock, failed=self._failed
        )
        self.bus = EventBus(
            reference(at.redis),
            process.store,
            team=spec.team,
            roles=at.roles,
            agreed=at.agreed,
            settings=at.settings,
        )
        process.ready((lambda: self.bus.own(spec.role, at.shard)) if process.store else None)
        self._consumer = self.bus.consumer(
            "role", spec.role, spec.name, self._deliver, Reading(owner=process.owner, shard=at.shard)
        )
        self.bus.start(keep=at.keep)
        if events := resumed(process, self.kept):
            self.bus.publish_all(events, owner=process.owner)
        self._consumer.start()

    def health(self) -> Health:
        """How it is, also while it is at work."""
        fenced = isinstance(self._consumer.failure, Fenced) or self._consumer.stopped
        return self._process.health(self._consumer.counts["handled"], fenced=fenced)

    def kept(self, session: str) -> Kept:
        """What was last committed of a session. Raises SnapshotRefused if that cannot be used."""
        return opened(self.bus.state(self.spec.role, session), self._process.behaviour, self.spec.name, session)

    def stop(self, why: str = "asked to") -> None:
        """Finish the event at hand, note the end, and close. Stopping twice is no error."""
        if not self._stopped:
            self._stopped = True
            self.bus.stop()
            self._process.end(why)

    def _deliver(self, delivery: Delivery) -> None:
        process, session = self._process, delivery.session
        with self._mailbox:
            process.begin_event()
            try:
                kept = opened(delivery.snapshot(), process.behaviour, self.spec.name, session)
                if session in self._in_error:
                    kept = kept.after(Outcome(state=kept.state, awaiting=kept.awaiting), "error")
                stepped = step(self._stepping, kept, delivery.event)
                self._in_error.discard(session)
                after = kept.after(stepped.outcome, stepped.life)
                damaged = process.faults.at("before_commit")
                body = {**after.body(), "sum": "damaged"} if damaged else after.body()
                delivery.keep(body, schema=process.behaviour.schema)
                if delivery.attempt > 1:
                    delivery.record(self._again(delivery))
                _hand_over(delivery, stepped.outcome, stepped.records)
            finally:
                process.end_event()

    def _again(self, delivery: Delivery) -> Redelivered:
        return Redelivered(
            correlation_id=delivery.session, at=self._process.clock(), agent=self.spec.role, attempt=delivery.attempt
        )

    def _failed(self, session: str, records: list[Record]) -> None:
        self._in_error.add(session)
        self._process.note(records)


def _hand_over(delivery: Delivery, outcome: Outcome, records: tuple[Record, ...]) -> None:
    """Put all that came of the event into its delivery."""
    for key in outcome.cancels:
        delivery.cancel(key)
    for send in outcome.sends:
        if send.delay_s > 0:
            delivery.send_later(send.to, send.payload, delay_s=send.delay_s, key=send.key)
        else:
            delivery.send(send.to, send.payload)
    for record in records:
        delivery.record(record)
