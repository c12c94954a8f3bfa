"""An agent that is called directly: one mailbox, state from the last commit, and only as long as it is the owner."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from threading import Lock

from sqlalchemy.engine import Connection

from runtime.actor.behaviour import Outcome, Send
from runtime.actor.errors import DeadlinePassed
from runtime.actor.kept import Kept, opened
from runtime.actor.process import AgentProcess, Health
from runtime.actor.resuming import resumed
from runtime.actor.spec import AgentSpec
from runtime.actor.step import Stepped, Stepping, step
from runtime.bus.event import Event
from runtime.errors import Fenced
from runtime.records import Json, Record
from runtime.seams import Clock, now
from runtime.store import history, inbox, owners, snapshots
from runtime.store.inbox import Had
from runtime.store.snapshots import Saving

GROUP = "actor"
"""The group under which the store notes events that came as direct calls."""
CACHED = 1_000
"""Sessions whose state is held in memory; of others it is read from the store again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a caller of an agent gets."""

    value: Json
    sends: tuple[Send, ...] = ()
    """Events for others. The caller passes them on; asking again with the same event gives the same ones."""
    again: bool = False
    """The event had been dealt with before; this is the answer from then."""


class Agent:
    """One agent. ``tell`` may be called from any thread; events are dealt with one at a time."""

    def __init__(self, spec: AgentSpec, *, clock: Clock = now) -> None:
        self.spec = spec
        self._process = process = AgentProcess(spec, clock)
        self._mailbox = Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._handled, self._fenced = 0, False
        self._stepping = Stepping(
            role=spec.role, behaviour=process.behaviour, faults=process.faults, clock=clock, failed=self._in_error
        )
        store = process.store
        process.ready((lambda: store.write(lambda c: owners.claim(c, spec.owner, clock()))) if store else None)
        for event in resumed(process, self.kept):
            self.tell(event)

    def tell(self, event: Event, until: float | None = None) -> Reply:
        """Deal with an event, once: asked again with the same event, the answer is the same.

        Args:
            event: with its id and session.
            until: when the caller stops waiting (Unix time, s): what comes later is not begun.

        Raises:
            DeadlinePassed: it was too late to begin.
            Fenced: another process is the owner by now.
            SnapshotRefused: the session's state cannot be used.
            UserCodeError: the behaviour raised; nothing of the event is kept.
        """
        with self._mailbox:
            if self._fenced:
                raise Fenced(self.spec.owner, self._process.epoch, self._process.epoch + 1)
            if until is not None and self._process.clock() > until:
                raise DeadlinePassed(self.spec.name, event.event_id, "came too late to be begun")
            self._process.begin_event()
            try:
                return self._told(event)
            except Fenced:
                self._fenced = True
                raise
            finally:
                self._process.end_event()

    def health(self) -> Health:
        """How it is, also while it is at work."""
        return self._process.health(self._handled, fenced=self._fenced)

    def kept(self, session: str) -> Kept:
        """What is kept of a session. Raises SnapshotRefused if that cannot be used."""
        with self._mailbox:
            return self._kept_of(session)

    def stop(self, why: str = "asked to") -> None:
        """Finish the event at hand, note the end, and close. Stopping twice is no error."""
        with self._mailbox:
            self._fenced = True
            self._process.end(why)

    def _told(self, event: Event) -> Reply:
        session = event.correlation_id
        kept = self._kept_of(session)
        if event.event_id in kept.answers:
            return _again(kept.answers[event.event_id])
        stepped = step(self._stepping, kept, event)
        answer = {"reply": stepped.outcome.reply, "sends": [asdict(s) for s in stepped.outcome.sends]}
        after = kept.after(stepped.outcome, stepped.life, event.event_id, answer)
        self._commit(event, stepped, after)
        self._remember(session, after)
        self._handled += 1
        return Reply(value=stepped.outcome.reply, sends=stepped.outcome.sends)

    def _commit(self, event: Event, stepped: Stepped, after: Kept) -> None:
        damaged = self._process.faults.at("before_commit")
        body = {**after.body(), "sum": "damaged"} if damaged else after.body()
        had = Had(event.event_id, (event.correlation_id, event.sender, event.to), 0)
        self._write(event.correlation_id, body, after.revision - 1, stepped.records, had)
        self._process.faults.at("after_commit")

    def _in_error(self, session: str, records: Sequence[Record]) -> None:
        """The behaviour raised: the state stays as it was, and the agent is in error."""
        kept = self._kept_of(session)
        after = kept.after(Outcome(state=kept.state, awaiting=kept.awaiting), "error")
        self._write(session, after.body(), kept.revision, records, None)
        self._remember(session, after)

    def _write(self, session: str, body: Json, expected: int, records: Sequence[Record], had: Had | None) -> None:
        """One transaction, where there is a store: the owner's epoch, the event as had, state and records."""
        process, spec = self._process, self.spec
        store, owner = process.store, process.owner
        if store is None or owner is None:
            return
        saving = Saving(
            team=spec.team,
            role=spec.role,
            session=session,
            state=body,
            schema=process.behaviour.schema,
            epoch=owner.epoch,
            expected=expected,
        )

        def work(connection: Connection) -> None:
            at = process.clock()
            owners.check(connection, owner)
            if had is not None:
                inbox.take(connection, GROUP, [had], "done", at)
            snapshots.save(connection, [saving], at)
            history.add(connection, spec.team, [(r, had.event_id if had else "") for r in records])

        store.write(work)

    def _kept_of(self, session: str) -> Kept:
        known = self._kept.get(session)
        if known is not None:
            return known
        store, spec = self._process.store, self.spec
        found = store.read(lambda c: snapshots.load(c, spec.team, spec.role, session)) if store else None
        kept = opened(found, self._process.behaviour, spec.name, session)
        self._remember(session, kept)
        return kept

    def _remember(self, session: str, kept: Kept) -> None:
        self._kept[session] = kept
        self._kept.move_to_end(session)
        if self._process.store is not None and len(self._kept) > CACHED:
            self._kept.popitem(last=False)


def _again(answer: Json) -> Reply:
    return Reply(value=answer["reply"], sends=tuple(Send(**s) for s in answer["sends"]), again=True)
