"""A session as a Temporal workflow: who is told what next. What comes of it is the agents' and the store's affair.

(It imports temporalio, the extra ``temporal``: import it where it is used.)
"""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from runtime.records import Json

TELL, GIVE_UP = "tell", "give_up"
TURN = timedelta(seconds=90)
"""How long a role's turn may take: longer than an agent is waited for, so that its own deadline is the one told."""
BEAT = timedelta(seconds=5)
"""A turn that has not been heard of for so long has lost its process, and is asked for again."""
AGAIN = RetryPolicy(initial_interval=timedelta(seconds=0.1), maximum_interval=timedelta(seconds=5), maximum_attempts=20)
"""A turn that its agent fails has fewer tries (``turns.TRIES``); these also count those that nobody came back from."""
AT_LAST = RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_interval=timedelta(seconds=30))
"""Undoing is tried for as long as it takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """An event for a role, by its place in the session."""

    session: str
    number: int
    """From 0; with the session it names the event for ever, over all retries."""
    sender: str
    to: str
    payload: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a role has for another one."""

    to: str
    payload: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a session ended."""

    payload: Json
    given_up: bool = False
    """A turn failed for good, and what had been done was undone."""


@workflow.defn(name="session")
class Chain:
    """One session. It ends when something is said to whoever opened it."""

    @workflow.run
    async def run(self, opening: Told) -> Ending:
        """Tell each role what there is for it, one after the other."""
        waiting, number = deque([opening]), opening.number
        while waiting:
            told = waiting.popleft()
            if told.to == opening.sender:
                return Ending(payload=told.payload)
            try:
                said = await _told(told)
            except ActivityError as error:
                return await _given_up(told, error.cause or error)
            for each in said:
                number += 1
                waiting.append(
                    Told(session=told.session, number=number, sender=told.to, to=each.to, payload=each.payload)
                )
        raise ApplicationError("nobody was told anything more, and the session had not ended", non_retryable=True)


async def _told(told: Told) -> list[Said]:
    return await workflow.execute_activity(
        TELL, told, result_type=list[Said], start_to_close_timeout=TURN, heartbeat_timeout=BEAT, retry_policy=AGAIN
    )


async def _given_up(told: Told, why: BaseException) -> Ending:
    reason = why.message if isinstance(why, ApplicationError) else str(why)
    payload = await workflow.execute_activity(
        GIVE_UP,
        args=[told.session, reason],
        result_type=dict[str, Json],
        start_to_close_timeout=10 * TURN,
        heartbeat_timeout=BEAT,
        retry_policy=AT_LAST,
    )
    return Ending(payload=payload, given_up=True)
