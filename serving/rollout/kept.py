"""What rollouts keep in the store: outcomes of sessions, trials, and who judges."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import exists, select, text, update
from sqlalchemy.engine import Connection

from runtime.errors import RepertoryError
from runtime.store.tables import HISTORY
from serving.rollout.outcome import Outcome
from serving.rollout.tables import OUTCOMES, TRIALS
from serving.rollout.trial import Trial

SESSION, FEEDBACK, TERMS = "session", "feedback", "terms"
"""Aspects of a session: how it went, what was said of it from outside, what the team's own terms paid."""
LEASE_S = 30.0
"""How long a judge that says nothing keeps its place (s): several rounds of the loop."""
BATCH = 500
"""Outcomes that are counted in at once: one transaction of some ten milliseconds."""
OVERLAP = 2_000
"""Records that are looked at again: on PostgreSQL a transaction may commit after a later one has."""
NOTE = text(
    "INSERT INTO rollout_outcomes (team, session, aspect, body, at) VALUES (:team, :session, :aspect, :body, :at) "
    "ON CONFLICT (team, session, aspect) DO NOTHING"
)
SAVE = text(
    "INSERT INTO rollout_trials (team, body, at) VALUES (:team, :body, :at) "
    "ON CONFLICT (team) DO UPDATE SET body = excluded.body, at = excluded.at"
)
HOLD = text(
    "INSERT INTO rollout_leases (team, holder, at) VALUES (:team, :holder, :at) "
    "ON CONFLICT (team) DO UPDATE SET holder = excluded.holder, at = excluded.at "
    "WHERE rollout_leases.holder = excluded.holder OR rollout_leases.at < :old"
)


class NotTheJudge(RepertoryError):
    """Somebody else judges this team's rollouts."""


@dataclass(slots=True)
class Docket:
    """A team's trials."""

    trials: dict[str, Trial] = field(default_factory=dict[str, Trial])
    """By version."""
    swept: int = 0
    """The number of the last record that was searched for sessions' ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """Something that is not in any statistics yet."""

    id: int
    aspect: str
    outcome: Outcome
    value: float | None
    """The reward, where the news is one."""


def hold(connection: Connection, team: str, holder: str, at: float) -> None:
    """Be the judge of a team's rollouts, from now on for ``LEASE_S``, and until the transaction ends at least.

    Raises:
        NotTheJudge: somebody else is, and has said so less than ``LEASE_S`` ago.
    """
    row = {"team": team, "holder": holder, "at": at, "old": at - LEASE_S}
    if not connection.execute(HOLD, row).rowcount:
        raise NotTheJudge(f"another process judges the rollouts of {team}")


def note(connection: Connection, team: str, outcome: Outcome, at: float) -> bool:
    """Note how a session went, once; whether it was new."""
    return _add(connection, (team, outcome.session, SESSION), asdict(outcome), at)


def note_reward(connection: Connection, team: str, session: str, aspect: str, value: float, at: float) -> bool:
    """Note a session's reward, once for each aspect; whether it was new."""
    return _add(connection, (team, session, aspect), {"value": value}, at)


def _add(connection: Connection, named: tuple[str, str, str], body: Mapping[str, Any], at: float) -> bool:
    team, session, aspect = named
    row = {"team": team, "session": session, "aspect": aspect, "body": json.dumps(body, allow_nan=False), "at": at}
    return bool(connection.execute(NOTE, row).rowcount)


def docket(connection: Connection, team: str) -> Docket:
    """A team's trials as they were last saved."""
    body = connection.execute(select(TRIALS.c.body).where(TRIALS.c.team == team)).scalar()
    if body is None:
        return Docket()
    kept = json.loads(body)
    trials = [Trial.from_state(state) for state in kept["trials"]]
    return Docket({t.version: t for t in trials}, kept["swept"])


def save(connection: Connection, team: str, kept: Docket, at: float) -> None:
    """Save a team's trials."""
    body = {"trials": [t.state() for t in kept.trials.values()], "swept": kept.swept}
    connection.execute(SAVE, {"team": team, "body": json.dumps(body), "at": at})


def news(connection: Connection, team: str) -> list[News]:
    """Outcomes that are in no statistics yet. A reward waits until its session is over."""
    mine, over = OUTCOMES.alias("mine"), OUTCOMES.alias("over")
    same = (over.c.team == mine.c.team) & (over.c.session == mine.c.session) & (over.c.aspect == SESSION)
    found = (
        select(mine.c.id, mine.c.aspect, mine.c.body, over.c.body.label("session_body"))
        .select_from(mine.join(over, same))
        .where(mine.c.team == team, mine.c.taken == 0)
        .order_by(mine.c.id)
        .limit(BATCH)
    )
    return [
        News(
            id=row.id,
            aspect=row.aspect,
            outcome=Outcome(**json.loads(row.session_body)),
            value=json.loads(row.body).get("value"),
        )
        for row in connection.execute(found)
    ]


def take(connection: Connection, counted: list[News]) -> None:
    """These are in the statistics now."""
    mine = OUTCOMES.c.id.in_([n.id for n in counted])
    connection.execute(update(OUTCOMES).where(mine).values(taken=1))


def unsettled(connection: Connection, team: str, since: int) -> list[tuple[int, str]]:
    """Sessions that have ended and whose outcome has not been noted: the number of the record, and the session."""
    c, o = HISTORY.c, OUTCOMES.c
    known = exists().where(o.team == c.team, o.session == c.session, o.aspect == SESSION)
    found = (
        select(c.id, c.session)
        .where(c.id > since - OVERLAP, c.team == team, c.kind == "episode_ended", ~known)
        .order_by(c.id)
        .limit(BATCH)
    )
    return [(row[0], row[1]) for row in connection.execute(found)]
