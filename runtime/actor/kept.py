"""What an agent keeps of a session, as JSON: its state, what it waits for, what it has answered. With a checksum."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from runtime.actor.behaviour import Behaviour, Outcome
from runtime.actor.errors import SnapshotRefused
from runtime.lifecycle import Life
from runtime.records import Json
from runtime.seams import digest
from runtime.store.snapshots import Snapshot
from runtime.tools import canonical

REPLIES = 16
"""Answers kept a session, for callers that ask again: one has far fewer calls out at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a caller was told, and what is to be sent on."""

    reply: Json
    sends: tuple[Json, ...] = ()
    """Outgoing events, as ``Send`` in JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """An agent's part of a session."""

    state: Json = None
    life: Life = "idle"
    awaiting: Mapping[str, Json] = field(default_factory=dict[str, Json])
    answers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The last answers, by event."""
    revision: int = 0

    def after(self, outcome: Outcome, life: Life, event_id: str = "", answer: Json = None) -> "Kept":
        """What is kept after an event, with its answer where a caller may ask for it again."""
        answers = dict(self.answers)
        if event_id:
            answers[event_id] = answer
            while len(answers) > REPLIES:
                del answers[next(iter(answers))]
        return replace(
            self,
            state=outcome.state,
            life=life,
            awaiting=outcome.awaiting,
            answers=answers,
            revision=self.revision + 1,
        )

    def body(self) -> Json:
        """As the store keeps it."""
        held = {"state": self.state, "life": self.life, "awaiting": dict(self.awaiting), "answers": dict(self.answers)}
        return {**held, "sum": _checksum(held)}


def opened(snapshot: Snapshot | None, behaviour: Behaviour, agent: str, session: str) -> Kept:
    """What was kept, in the form of today's program.

    Raises:
        SnapshotRefused: it is damaged, or its form is not that of the behaviour and cannot be made so.
    """
    if snapshot is None:
        return Kept()
    body = snapshot.state
    if not isinstance(body, dict) or "sum" not in body:
        raise SnapshotRefused(agent, session, "was not written by an agent")
    held = {k: v for k, v in cast("dict[str, Any]", body).items() if k != "sum"}
    if cast("dict[str, Any]", body)["sum"] != _checksum(held):
        raise SnapshotRefused(agent, session, "is damaged: its checksum does not fit")
    state = _today(held["state"], snapshot.schema, behaviour, agent, session)
    return Kept(
        state=state,
        life=held["life"],
        awaiting=held["awaiting"],
        answers=held["answers"],
        revision=snapshot.revision,
    )


def _today(state: Json, schema: int, behaviour: Behaviour, agent: str, session: str) -> Json:
    if schema == behaviour.schema:
        return state
    if schema > behaviour.schema:
        raise SnapshotRefused(agent, session, f"has schema {schema}, newer than this program's {behaviour.schema}")
    migrate = getattr(behaviour, "migrate", None)
    if migrate is None:
        why = f"has schema {schema}, and the agent of schema {behaviour.schema} does not say how to migrate it"
        raise SnapshotRefused(agent, session, why)
    return migrate(state, schema)


def _checksum(held: Mapping[str, Json]) -> str:
    return f"{digest(canonical(dict(held))):016x}"
