"""The connection to a Temporal server: sessions are opened there, and this process does their turns."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from runtime.actor.agent import Reply
from runtime.background import Loop
from runtime.bus.event import Event
from runtime.errors import ServiceUnavailable
from runtime.records import Json

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHandle

    from runtime.coordinator.chain import Chain, Ending, Told

ADDRESS = "127.0.0.1:7233"
"""Where a Temporal server listens unless it is told otherwise."""
CONNECT_S = 10.0
"""How long connecting may take (s)."""
AGAIN_S = 0.5
"""Pause before a server that is away is asked again (s)."""
THREADS = 32
"""Turns that are done at once: they mostly wait for their agents."""
STOP_S = 30.0
"""How long closing waits for the turns at hand (s)."""


class Coordinator:
    """Opens sessions on a Temporal server and does their turns, until it is closed.

    Args:
        address: the server's ``HOST:PORT``.
        queue: the task queue; all processes that serve it must know the same agents and the same store.
        tell: has an agent deal with an event, once.
        give_up: ends a session that cannot go on (session, reason), with what its tools did undone.

    Raises:
        ServiceUnavailable: temporalio is not installed, or the server does not answer.
    """

    def __init__(
        self,
        address: str,
        queue: str,
        *,
        tell: Callable[[Event], Reply],
        give_up: Callable[[str, str], Json],
    ) -> None:
        available()
        self._address, self._queue, self._give_up = address, queue, give_up
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="turn")
        self._loop = Loop("temporal")
        try:
            self._client = self._loop.run(_connected(address), CONNECT_S + 1)
        except BaseException:
            self._loop.close()
            raise
        self._closing = asyncio.Event()
        self.failure: BaseException | None = None
        """Why this process does no more turns; None: it does."""
        self._working = self._loop.submit(self._work(tell))

    def open(self, opening: "Told") -> "Future[Ending]":
        """Open a session, or find the one of that name; its end. The server may be away meanwhile."""
        return self._loop.submit(self._session(opening))

    def close(self) -> None:
        """Finish the turns at hand, and leave. Sessions that are open stay so: another process goes on with them."""
        self._loop.run(self._leave(), STOP_S)
        with suppress(Exception):
            self._working.result(STOP_S)
        self._loop.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _leave(self) -> None:
        self._closing.set()

    async def _work(self, tell: Callable[[Event], Reply]) -> None:
        from temporalio.worker import UnsandboxedWorkflowRunner, Worker

        from runtime.coordinator.chain import Chain
        from runtime.coordinator.turns import Turns

        turns = Turns(tell, self._give_up, self._threads, self._stop)
        try:
            async with Worker(
                self._client,
                task_queue=self._queue,
                workflows=[Chain],
                activities=turns.all(),
                max_concurrent_activities=THREADS,
                # The workflow is ours, short, and asks nothing but activities: a sandbox would cost more than it does.
                workflow_runner=UnsandboxedWorkflowRunner(),
                graceful_shutdown_timeout=timedelta(seconds=STOP_S / 2),
            ):
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for sessions is told
            self._stop(_refused(self._address, error))

    def _stop(self, why: BaseException) -> None:
        self.failure = self.failure or why
        self._closing.set()

    async def _session(self, opening: "Told") -> "Ending":
        from temporalio.client import WorkflowFailureError
        from temporalio.service import RPCError, RPCStatusCode

        away = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.RESOURCE_EXHAUSTED)
        while True:
            try:
                return await (await self._opened(opening)).result()
            except RPCError as error:
                if error.status not in away:
                    raise _refused(self._address, error) from error
                await asyncio.sleep(AGAIN_S)
            except WorkflowFailureError as error:  # somebody ended the workflow by hand
                return await self._abandoned(opening.session, f"its workflow ended: {error.cause}")

    async def _abandoned(self, session: str, reason: str) -> "Ending":
        from runtime.coordinator.chain import Ending

        giving_up = asyncio.get_running_loop().run_in_executor(self._threads, self._give_up, session, reason)
        return Ending(payload=await giving_up, given_up=True)

    async def _opened(self, opening: "Told") -> "WorkflowHandle[Chain, Ending]":
        from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
        from temporalio.exceptions import WorkflowAlreadyStartedError

        from runtime.coordinator.chain import Chain

        try:
            return await self._client.start_workflow(
                Chain.run,
                opening,
                id=opening.session,
                task_queue=self._queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
        except WorkflowAlreadyStartedError:  # it has ended already
            return self._client.get_workflow_handle_for(Chain.run, opening.session)


def available() -> Any:
    """See that temporalio is installed.

    Raises:
        ServiceUnavailable: it is not.
    """
    try:
        import temporalio
    except ImportError:
        raise ServiceUnavailable(
            "coordinator: temporal", "temporalio is not installed", "pip install -e '.[temporal]'"
        ) from None
    return temporalio


def reachable(address: str) -> None:
    """See that the server answers, before anything else is started.

    Raises:
        ServiceUnavailable: it does not, or temporalio is not installed.
    """
    available()
    loop = Loop("temporal-look")
    try:
        loop.run(_connected(address), CONNECT_S + 1)
    finally:
        loop.close()


def _refused(address: str, error: Exception) -> ServiceUnavailable:
    remedy = "see that it has the namespace `default`, and that this process may use it"
    return ServiceUnavailable(f"coordinator: temporal at {address}", str(error), remedy)


async def _connected(address: str) -> "Client":
    from temporalio.client import Client

    try:
        return await asyncio.wait_for(Client.connect(address), CONNECT_S)
    except (RuntimeError, TimeoutError, ValueError) as error:
        said = str(error) or f"no answer within {CONNECT_S:g} s"
        remedy = "start a server (`temporal server start-dev --db-filename FILE`), or name its HOST:PORT"
        raise ServiceUnavailable(f"coordinator: temporal at {address}", said, remedy) from None
