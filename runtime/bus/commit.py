"""One transaction for all that a batch of handled events brought: had, fenced, state, outgoing events, records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from runtime.bus.accept import accept, scheduled
from runtime.bus.delivery import Delivery
from runtime.bus.event import prepared
from runtime.bus.parts import Parts
from runtime.bus.waiting import Item
from runtime.store import history, inbox, owners, snapshots, timers
from runtime.store.inbox import Had
from runtime.store.outbox import Row
from runtime.store.owners import Owner
from runtime.store.snapshots import ANY, Saving, Snapshot

ROLE = "role"
"""The group that is the role itself; any other reads along."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """Who reads: the part of its place in the team that a commit depends on."""

    role: str
    group: str
    owner: Owner | None = None

    @property
    def stateful(self) -> str:
        """Whose state it keeps: the role's, or its own where it only reads along."""
        return self.role if self.group == ROLE else f"{self.role}/{self.group}"


@dataclass(frozen=True, slots=True)
class Done:
    """An event whose handler has returned."""

    item: Item
    delivery: Delivery


def commit(connection: Connection, parts: Parts, seat: Seat, done: Sequence[Done], at: float) -> list[Row]:
    """Commit what handlers brought; the events to be sent afterwards.

    Raises:
        Clash: another reader had one of the events, or changed a state that was read.
        Fenced: somebody else owns the role by now.
    """
    safety = parts.settings.safety
    if seat.owner and safety.fencing:
        owners.check(connection, seat.owner)
    had = [Had(d.item.event.event_id, d.item.line, d.item.event.seq, d.item.replayed) for d in done]
    if safety.dedupe:
        inbox.commit(connection, parts.team, seat.group, had, at)
    else:
        inbox.take(connection, seat.group, had, "done", at)
        inbox.move(connection, parts.team, seat.group, had, at)
    snapshots.save(connection, [_saving(parts, seat, d) for d in done if d.delivery.effects.kept], at)
    history.add(connection, parts.team, [(r, d.item.event.event_id) for d in done for r in d.delivery.effects.records])
    inbox.clear_tries(connection, seat.group, [d.item.event.event_id for d in done if d.item.again])
    _timers(connection, parts, done, at)
    sends = [prepared(e, at) for d in done for e in d.delivery.effects.sends]
    return accept(connection, parts, sends, at) if sends else []


def after(delivery: Delivery, seat: Seat, at: float) -> Snapshot:
    """The state that a handled event leaves, before it is committed, as the next event of its session sees it."""
    effects = delivery.effects
    before = delivery.read.revision if delivery.read else 0
    revision = before + 1 if delivery.looked and before != ANY else ANY
    epoch = seat.owner.epoch if seat.owner else 0
    return Snapshot(state=effects.state, schema=effects.schema, epoch=epoch, revision=revision, at=at)


def _saving(parts: Parts, seat: Seat, done: Done) -> Saving:
    delivery = done.delivery
    saving = Saving(
        team=parts.team,
        role=seat.stateful,
        session=delivery.session,
        state=delivery.effects.state,
        schema=delivery.effects.schema,
        epoch=seat.owner.epoch if seat.owner else 0,
    )
    if not delivery.looked:
        return saving
    return replace(saving, expected=delivery.read.revision if delivery.read else 0)


def _timers(connection: Connection, parts: Parts, done: Sequence[Done], at: float) -> None:
    """In the order in which handlers asked for them: within one delivery, what is cancelled is set anew afterwards."""
    for d in done:
        if d.delivery.effects.cancels:
            timers.cancel(connection, parts.team, d.delivery.effects.cancels)
        timers.schedule(connection, parts.team, [scheduled(t, at) for t in d.delivery.effects.timers])
