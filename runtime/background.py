"""What lets a synchronous caller wait for something else, and never longer than it said."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

CLOSE_S = 5.0
"""How long closing waits for what is still running (s): far more than a cancelled task needs."""


class Loop:
    """An event loop in a thread of its own, for libraries that are asynchronous only."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin the work; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """The work's result.

        Raises:
            TimeoutError: it is not there after so many seconds; the work is cancelled.
        """
        future = self.submit(work)
        try:
            return future.result(timeout=timeout_s)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None

    def close(self) -> None:
        """Cancel what runs, and end the thread."""
        if self._thread.is_alive():
            self.run(_cancel_others(), CLOSE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_S)


async def _cancel_others() -> None:
    others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def within(seconds: float, function: Callable[[], T], what: str) -> T:
    """The function's result, from a thread of its own.

    Python cannot stop a thread: one that is too late runs on, unheard, and may still have its effect.

    Raises:
        TimeoutError: it is not there after so many seconds.
    """
    future: Future[T] = Future()
    Thread(target=_settle, args=(future, function), name=what, daemon=True).start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        if future.done():
            raise
        raise TimeoutError(f"{what}: no answer within {seconds:g} s") from None


def _settle(future: "Future[T]", function: Callable[[], T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
        future.set_exception(error)
