"""The activities: a role's turn, and giving a session up. Either may be run again at any time; effects come once."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from runtime.actor.agent import Reply
from runtime.actor.errors import AgentLost, DeadlinePassed
from runtime.bus.errors import ContractBroken, NoSuchRole
from runtime.bus.event import Event
from runtime.coordinator.chain import GIVE_UP, TELL, Said, Told
from runtime.errors import Fenced, RepertoryError, ServiceUnavailable
from runtime.records import Json
from runtime.store import StoreBusy

T = TypeVar("T")
TRIES = 5
"""Tries of a turn that its agent itself answers with a failure, as many as the bus gives an event."""
BEAT_S = 1.0
"""Pause between two signs of life (s)."""
HOPELESS = (ContractBroken, NoSuchRole)
"""Failures that another try would only repeat."""
AWAY = (AgentLost, DeadlinePassed, Fenced, ServiceUnavailable, StoreBusy)
"""Failures that say nothing about the turn: somebody was not there."""


class Turns:
    """What the workflow has done.

    Args:
        tell: has an agent deal with an event, once.
        give_up: ends a session that cannot go on, with what its tools did undone; called again, it goes on.
        threads: where both run.
        fenced: called when somebody else has become the owner of a role: this process must do no more turns.
    """

    def __init__(
        self,
        tell: Callable[[Event], Reply],
        give_up: Callable[[str, str], Json],
        threads: Executor,
        fenced: Callable[[Fenced], None],
    ) -> None:
        self._tell, self._give_up, self._threads, self._fenced = tell, give_up, threads, fenced

    @activity.defn(name=TELL)
    async def tell(self, told: Told) -> list[Said]:
        """Tell a role's agent an event; what it has for others."""
        event = Event(
            to=told.to,
            sender=told.sender,
            correlation_id=told.session,
            event_id=f"{told.session}/{told.number}",
            payload=told.payload,
        )
        try:
            reply = await self._beating(lambda: self._tell(event))
        except RepertoryError as error:
            if isinstance(error, Fenced):
                self._fenced(error)
            last = activity.info().attempt >= TRIES and not isinstance(error, AWAY)
            what = f"{type(error).__name__}: {error}"
            raise ApplicationError(what, non_retryable=last or isinstance(error, HOPELESS)) from error
        return [Said(to=s.to, payload=s.payload) for s in reply.sends]

    @activity.defn(name=GIVE_UP)
    async def give_up(self, session: str, reason: str) -> Json:
        """End a session that cannot go on; what it came to."""
        return await self._beating(lambda: self._give_up(session, reason))

    async def _beating(self, work: Callable[[], T]) -> T:
        """The work's result, with a sign of life now and then: none where it is short, since each is a call."""
        running: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._threads, work)
        while not (await asyncio.wait({running}, timeout=BEAT_S))[0]:
            activity.heartbeat()
        return running.result()

    def all(self) -> list[Callable[..., Any]]:
        """Every activity."""
        return [self.tell, self.give_up]
