"""A model that says what it was told to: for tests, demonstrations and teammates that do not learn."""

from collections.abc import Callable, Sequence
from threading import Lock

from runtime.llm.types import Failure, Finished, Happening, Piece, Request

Script = Callable[[Request], str | Failure]
"""Answers by rule."""


class Scripted:
    """Replies from a list, one after the other and then from the start, or by a rule."""

    provider = "scripted"

    def __init__(self, replies: Sequence[str] | Script, model: str = "script") -> None:
        self.model = model
        self._rule = replies if callable(replies) else _Cycle(replies)

    def start(self, request: Request, deliver: Callable[[Happening], None]) -> Callable[[], None]:
        """Answer at once."""
        reply = self._rule(request)
        if isinstance(reply, Failure):
            deliver(reply)
        else:
            deliver(Piece(reply))
            deliver(Finished())
        return lambda: None

    def count(self, text: str) -> int | None:
        """Words: a script has no tokens."""
        return len(text.split())

    def close(self) -> None:
        """There is nothing to release."""


class _Cycle:
    def __init__(self, replies: Sequence[str]) -> None:
        if not replies:
            raise ValueError("a scripted model needs at least one reply")
        self._replies, self._said, self._lock = tuple(replies), 0, Lock()

    def __call__(self, request: Request) -> str:
        with self._lock:
            reply = self._replies[self._said % len(self._replies)]
            self._said += 1
        return reply
