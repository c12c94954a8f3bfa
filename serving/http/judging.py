"""The route by which rewards come in."""

import uuid
from typing import Annotated, Any

from fastapi import FastAPI, Response
from pydantic import Field

from runtime.records import Closed
from serving.access import Caller
from serving.desk import Desk
from serving.http.asking import KEY, asker, tell
from serving.rollout.feedback import Accepting, Receipt, Said, submit
from serving.rollout.plan import RewardRule


class Given(Closed):
    """A reward for a session of the caller's, or for one decision in it."""

    team: Annotated[str, Field(min_length=1, max_length=200)]
    session: Annotated[str, Field(min_length=1, max_length=200)]
    value: float
    decision: Annotated[str, Field(max_length=400)] | None = None
    """A decision's `id`; null: the whole session is meant."""
    source: Annotated[str, Field(max_length=200)] = ""
    """Who says so."""


def feedback(app: FastAPI, desk: Desk, rule: RewardRule) -> None:
    """Add the route. ``rule``: what rewards may be."""
    known = asker(desk)

    @app.post("/v1/feedback")
    async def give_feedback(given: Given, response: Response, caller: Caller = known, key: KEY = "") -> Receipt:
        """Say what a session, or a decision in it, was worth: kept once for its `Idempotency-Key`, also long after."""
        desk.access.check(caller, given.team, given.session)
        version, statistics = await desk.away(desk.played, given.team, given.session)
        said = Said(
            session=given.session,
            value=given.value,
            key=f"{caller.name}:{key or uuid.uuid4().hex}"[:200],
            decision=given.decision,
            source=given.source or caller.name,
        )
        accepting = Accepting(rule=rule, statistics=statistics)
        receipt: Any = await desk.away(submit, desk.versions.store, given.team, said, accepting, desk.now())
        tell(response, given.session, version)
        return receipt
