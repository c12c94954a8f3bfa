"""Rewards from outside: looked over, kept once, and counted for the version that played the session."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import Field
from sqlalchemy import exists, select, text
from sqlalchemy.engine import Connection

from rewards.standardize import RewardStandardizer
from runtime.records import Closed, Decided, Feedback
from runtime.store import Store, feedback, history
from runtime.store.base import Clash
from runtime.store.tables import HISTORY, PINS
from serving.errors import NoSuchSession, ServingError
from serving.rollout.kept import FEEDBACK, note_reward
from serving.rollout.plan import RewardRule
from serving.rollout.tables import FEEDBACK_KEYS

KEEP = text(
    "INSERT INTO rollout_feedback_keys (team, given, content, body, at) VALUES (:team, :given, :content, :body, :at) "
    "ON CONFLICT (team, given) DO NOTHING"
)


class BadFeedback(ServingError):
    """A reward that is not accepted: out of bounds, no number, or for a decision that there was not."""

    status = 422

    def __init__(self, message: str) -> None:
        super().__init__("bad_feedback", message)

    def __reduce__(self) -> tuple[type["BadFeedback"], tuple[str]]:
        return type(self), (self.message,)


class KeyTaken(ServingError):
    """The idempotency key has been used for something else."""

    status = 409

    def __init__(self, message: str) -> None:
        super().__init__("key_taken", message)

    def __reduce__(self) -> tuple[type["KeyTaken"], tuple[str]]:
        return type(self), (self.message,)


class Said(Closed):
    """The body of ``POST /v1/feedback``, with the idempotency key."""

    session: str = Field(min_length=1, max_length=200)
    value: float
    """The reward, in the unit that whoever gives it has chosen."""
    key: str = Field(min_length=1, max_length=200)
    """Said again under the same key, it changes nothing."""
    decision: str | None = None
    """``SESSION/AGENT/TURN`` where one decision is meant; null: the whole session."""
    source: str = Field(default="", max_length=200)
    """Who says so."""


class Receipt(Closed):
    """What became of it."""

    repeated: bool = False
    """It had been said before, and has changed nothing now."""
    judged: bool = False
    """Its version is judged by it: it is the first that was said of a whole session."""
    standardized: float | None = None
    """By the version's frozen statistics; null where it has none for this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepting:
    """By what feedback is looked over."""

    rule: RewardRule
    """Its bounds (``Plan.reward``)."""
    statistics: Mapping[str, Any] | None = None
    """The frozen standardizer of the version that played the session (``Version.statistics``)."""


def submit(store: Store, team: str, said: Said, accepting: Accepting, at: float) -> Receipt:
    """Keep a reward: durable when this returns, once however often it is said, also long after the session's end.

    Args:
        store: one with the rollouts' tables (``make_tables``).
        team: whose session it was.
        said: what was said.
        accepting: by what it is looked over.
        at: now (Unix time, s).

    Raises:
        NoSuchSession: the team has none of that id.
        BadFeedback: the value is no number, or out of bounds; or there was no such decision.
        KeyTaken: something else was said under this key.
    """
    _look_over(said, accepting.rule)
    return store.write(lambda c: _keep(c, team, said, accepting, at))


def standardized(said: Said, statistics: Mapping[str, Any] | None) -> float | None:
    """The value by a version's frozen statistics; None where they say nothing about it.

    They are of an agent's decisions, or of the team: a reward for a whole session has a standard only in the latter.
    """
    if not statistics or not statistics.get("keys"):
        return None
    agent = said.decision.split("/")[-2] if said.decision else ""
    key = next((k for k in (agent, "team") if k in statistics["keys"]), None)
    if key is None:
        return None
    return float(RewardStandardizer.from_state(statistics).transform(key, [said.value])[0])


def _look_over(said: Said, rule: RewardRule) -> None:
    if not math.isfinite(said.value):
        raise BadFeedback(f"{said.value} is no reward; leave out what is not known")
    low, high = rule.low, rule.high
    if (low is not None and said.value < low) or (high is not None and said.value > high):
        raise BadFeedback(f"{said.value:g} is out of bounds: rewards lie from {_end(low)} to {_end(high)}")


def _end(bound: float | None) -> str:
    return "anything" if bound is None else f"{bound:g}"


def _keep(connection: Connection, team: str, said: Said, accepting: Accepting, at: float) -> Receipt:
    content = sha256(said.model_dump_json().encode()).hexdigest()
    before = _before(connection, team, said.key)
    if before is not None:
        if before[0] != content:
            raise KeyTaken(f"something else was said under the key {said.key!r}; give a new one")
        return Receipt(**json.loads(before[1])).model_copy(update={"repeated": True})
    _known(connection, team, said)
    judged = said.decision is None and note_reward(connection, team, said.session, FEEDBACK, said.value, at)
    receipt = Receipt(judged=judged, standardized=standardized(said, accepting.statistics))
    row = {"team": team, "given": said.key, "content": content, "body": receipt.model_dump_json(), "at": at}
    if not connection.execute(KEEP, row).rowcount:
        raise Clash("the same was said at the same moment")
    feedback.add(connection, team, Feedback(
        correlation_id=said.session, at=at, decision_id=said.decision, value=said.value, source=said.source
    ))  # fmt: skip
    return receipt


def _before(connection: Connection, team: str, key: str) -> tuple[str, str] | None:
    c = FEEDBACK_KEYS.c
    row = connection.execute(select(c.content, c.body).where(c.team == team, c.given == key)).one_or_none()
    return (row.content, row.body) if row else None


def _known(connection: Connection, team: str, said: Said) -> None:
    """Raises NoSuchSession or BadFeedback for what there was not."""
    h, p = HISTORY.c, PINS.c
    recorded = exists().where(h.team == team, h.session == said.session)
    pinned = exists().where(p.team == team, p.session == said.session)
    if not connection.execute(select(recorded | pinned)).scalar():
        raise NoSuchSession
    if said.decision is not None:
        records = history.of_session(connection, team, said.session)
        if not any(isinstance(r, Decided) and r.decision_id == said.decision for r in records):
            raise BadFeedback(f"session {said.session} has no decision {said.decision!r}: write SESSION/AGENT/TURN")
