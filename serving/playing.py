"""A version at play: one turn of a session from its last committed state, committed once, whoever asks how often.

The state is a snapshot in the runtime's store, so any replica of the version goes on with any of its sessions. A turn
is committed in one transaction: the session is still open on this version, its state is the one that was read, and no
turn of this key has been committed. Where one of these does not hold, another replica was faster: what was played here
is dropped, and the committed answer is given.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Required, TypedDict, cast

from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from assembly.live import CLIENT, USUAL, LiveRole, Manner, NotUnderstood, opening
from assembly.versions import Version
from runtime.actor.behaviour import Outcome, Send
from runtime.bus.event import Event
from runtime.errors import RepertoryError
from runtime.facts import FactBoard
from runtime.records import Decided, EpisodeEnded, EpisodeOpened, Json, ModelCalled, Record, ToolAnswered
from runtime.seams import Clock, now
from runtime.store import Store, StoreBusy, history, pins, snapshots
from runtime.store.base import Clash
from runtime.store.snapshots import Saving, Snapshot
from runtime.tracing import current
from serving.pins import STATE, Pin, pinned, touch
from serving.rollout.settling import Over, settle
from serving.tables import TURNS

_log = logging.getLogger(__name__)
TRIES = 5
"""How often a turn is played anew because another one of the session was faster: more than that is a client that does
not wait for its answers."""
STEPS = 64
"""Roles that may decide one after another in a turn (a simultaneous round is one): more than any team has."""

Status = Literal["ok", "no_such_session", "elsewhere", "over", "busy", "impossible", "failed"]


class Answer(TypedDict, total=False):
    """What a turn came to."""

    status: Required[Status]
    version: str
    """For ``elsewhere``: the version that the session is pinned to."""
    message: str
    turn: dict[str, Json]
    """For ``ok``: what was decided, and how the session stands."""
    again: bool
    """It had been answered before, and this is the same answer."""


class Overtaken(RepertoryError):
    """Another replica committed a turn of the session, or it was ended or moved, while this one was being played."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a session when a turn is asked for."""

    pin: Pin | None
    snapshot: Snapshot | None
    answered: dict[str, Json] | None
    """What the turn of this key answered."""


class Player:
    """Plays sessions of one version.

    Args:
        version: who plays.
        alias: the version's name in pins.
        store: where sessions are, and with the rollouts' tables.
        manner: greedily or drawn, and from what seed.
        clock: the time on records.
    """

    def __init__(self, version: Version, alias: str, store: Store, manner: Manner = USUAL, clock: Clock = now) -> None:
        self.version, self.alias, self._store, self._clock = version, alias, store, clock
        team = self.team = version.team.name
        board = FactBoard(store, team)

        def committed(session: str) -> Sequence[Record]:
            return store.read(lambda c: history.of_session(c, team, session))

        self._roles = {r.name: LiveRole(version, r.name, committed, manner, clock, board) for r in version.team.roles}

    def turn(self, session: str, key: str) -> Answer:
        """Play the session's next turn, or give again what the turn of this key answered.

        A turn is one role's: it decides until it passes on, or ends the session.
        """
        try:
            return self._turn(session, key)
        except (StoreBusy, DBAPIError) as error:
            _log.warning("the store cannot be reached: %s", error)
            return {"status": "busy", "message": "the store cannot be reached just now: try again"}

    def _turn(self, session: str, key: str) -> Answer:
        for _ in range(TRIES):
            asked = self._store.read(lambda c: look(c, self.team, session, key))
            if (done := self._settled(asked)) is not None:
                return done
            if asked.snapshot is None:  # it has ended between two looks
                continue
            try:
                return {"status": "ok", "turn": self._play(session, key, asked.snapshot)}
            except Overtaken:
                continue
            except (StoreBusy, DBAPIError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a team raises, its client hears of it
                if not self._overtaken(session, asked.snapshot):
                    return self._fault(session, asked.snapshot, error)
        return {"status": "busy", "message": "turns of this session overtake each other: wait for each answer"}

    def _overtaken(self, session: str, before: Snapshot) -> bool:
        """Whether the session has gone on since: then what was played may have met records that are newer than it."""
        after = self._store.read(lambda c: snapshots.load(c, self.team, STATE, session))
        return after is None or after.revision != before.revision

    def _fault(self, session: str, before: Snapshot, error: Exception) -> Answer:
        """The answer to a turn that raised. It speaks against the version, unless the case cannot be played."""
        if isinstance(error, NotUnderstood):
            return {"status": "impossible", "message": str(error)}
        if isinstance(error, KeyError) and (missing := self._missing(session, before, error.args[0])):
            return {"status": "impossible", "message": f"the case has no {missing}, and {self.team} asks for it"}
        _log.error("session %s of %s %s: its turn failed", session, self.team, self.alias, exc_info=error)
        over = Over(session=session, version=self.alias, failed=True)
        self._store.write(lambda c: settle(c, self.team, over, self._clock()))
        return {"status": "failed", "message": f"{type(error).__name__}: {error}"}

    def _missing(self, session: str, before: Snapshot, key: object) -> str:
        """The part of a session's case that the key should be in, if the case was sent and the team's own have it."""
        records = self._store.read(lambda c: history.of_session(c, self.team, session))
        payload: Any = cast("Mapping[str, Any]", before.state)["payload"]
        case = next((r.case for r in records if isinstance(r, EpisodeOpened)), None) or payload.get("open")
        if self.version.team.generate is None or case is None:
            return ""
        usual = self.version.team.generate("eval", 0, 0)
        parts = {"truth": usual.truth, "visible": usual.visible}
        return next((f"{p}.{key}" for p, own in parts.items() if key in own and key not in case.get(p, {})), "")

    def _settled(self, asked: Asked) -> Answer | None:
        """The answer where nothing is to be played."""
        if asked.answered is not None:
            return {"status": "ok", "turn": asked.answered, "again": True}
        if asked.pin is None:
            return {"status": "no_such_session"}
        if asked.pin.version != self.alias:
            return {"status": "elsewhere", "version": asked.pin.version}
        return None if asked.pin.open else {"status": "over", "message": "the session is over"}

    def _play(self, session: str, key: str, before: Snapshot) -> dict[str, Json]:
        state: dict[str, Any] = dict(before.state)
        send = Send(to=state["to"] or self.version.team.turns.order[0], payload=self._payload(state["payload"]))
        states: dict[str, Json] = dict(state.get("states", {}))
        asked = state.get("traceparent", "")
        outcome = self._act(session, send, states, asked)
        role, steps = send.to, 1
        while not outcome.records and steps < STEPS:  # in a simultaneous round, until the last one has decided
            (send,) = outcome.sends
            outcome, steps = self._act(session, send, states, asked), steps + 1
        (send,) = outcome.sends
        after = {
            "to": send.to,
            "payload": send.payload,
            "turns": state["turns"] + 1,
            "states": states,
            "asked": state.get("asked", ""),
        }
        turn = shown(outcome.records, state["turns"], role, None if send.to == CLIENT else send.to)
        self._commit(session, key, before, after, outcome.records, turn)
        return turn

    def _payload(self, payload: Json) -> Json:
        """What opens the session, where the team is to draw its case itself."""
        fields = cast("Mapping[str, Any]", payload) if isinstance(payload, dict) else {}
        if "draw" not in fields:
            return payload
        generate, draw = self.version.team.generate, fields["draw"]
        if generate is None:
            raise NotUnderstood(f"{self.team} draws no cases of its own: send one as `scenario`")
        return opening(generate(draw["split"], draw["seed"], draw["index"]))

    def _act(self, session: str, send: Send, states: dict[str, Json], asked: str) -> Outcome:
        event = Event(to=send.to, sender=CLIENT, correlation_id=session, payload=send.payload, traceparent=asked)
        outcome = self._roles[send.to].handle(states.get(send.to), event)
        states[send.to] = outcome.state
        return outcome

    def _commit(
        self,
        session: str,
        key: str,
        before: Snapshot,
        after: Json,
        records: Sequence[Record],
        turn: Mapping[str, Json],
    ) -> None:  # fmt: skip
        at = self._clock()
        saving = Saving(team=self.team, role=STATE, session=session, state=after, expected=before.revision)

        def all_or_nothing(connection: Connection) -> None:
            if not touch(connection, self.team, session, self.alias, at):
                raise Overtaken(session)
            try:
                snapshots.save(connection, [saving], at)
            except Clash:
                raise Overtaken(session) from None
            row = {"team": self.team, "session": session, "turn": key, "body": json.dumps(dict(turn)), "at": at}
            connection.execute(TURNS.insert().values(row))
            history.add(connection, self.team, [(r, key) for r in records])
            if turn["ended"]:
                pins.unpin(connection, self.team, session, at)
                snapshots.drop(connection, self.team, session)

        self._store.write(all_or_nothing)


def look(connection: Connection, team: str, session: str, key: str) -> Asked:
    """What is known of a session and of a turn of it.

    The state is read first: a turn that is committed after that makes it old, and one before that is seen here.
    """
    snapshot = snapshots.load(connection, team, STATE, session)
    c = TURNS.c
    known = connection.execute(select(c.body).where(c.team == team, c.session == session, c.turn == key)).scalar()
    return Asked(
        pin=pinned(connection, team, session),
        snapshot=snapshot,
        answered=json.loads(known) if known is not None else None,
    )


def first_state(payload: Json, asked: str = "") -> dict[str, Json]:
    """The state of a session that nobody has played yet, with the trace of who asks.

    ``asked``: a digest of what opened it.
    """
    return {"to": "", "payload": payload, "turns": 0, "asked": asked, "traceparent": current()}


def shown(records: Sequence[Record], turn: int, role: str, following: str | None) -> dict[str, Json]:
    """A turn for its client: what was decided and answered, what it cost, and how the session stands."""
    end = next((r for r in records if isinstance(r, EpisodeEnded)), None)
    models = [r for r in records if isinstance(r, ModelCalled)]
    answers = {r.decision_id: r for r in records if isinstance(r, ToolAnswered)}
    return {
        "turn": turn,
        "agent": role,
        "decisions": [_decision(r, answers.get(r.decision_id)) for r in records if isinstance(r, Decided)],
        "to_act": following,
        "ended": end is not None,
        "outcome": dict(end.outcome) if end else None,
        "success": end.success if end else None,
        "cost_usd": sum(a.cost_usd for a in answers.values()) + sum(m.cost_usd or 0.0 for m in models),
        "degraded": any(m.degraded for m in models),
    }


def _decision(decided: Decided, answer: ToolAnswered | None) -> dict[str, Json]:
    told: dict[str, Json] = {
        "id": decided.decision_id,
        "agent": decided.agent,
        "tool": decided.call.tool,
        "args": dict(decided.call.args),
    }
    if answer is not None:
        told |= {"ok": answer.ok, "answer": answer.value}
        told["fault"] = answer.fault.model_dump() if answer.fault else None
    return told
