"""When a client tries again: after what says nothing about the request, with the key that makes trying again safe."""

import random
from collections.abc import Callable
from time import monotonic
from typing import Any

from runtime.errors import RepertoryError

AGAIN = (502, 503, 504)
"""Statuses after which the same request may succeed."""
OURS = "x-correlation-id"
"""A header of every answer that a router gave; without it, a router was killed or is not there yet."""
FIRST_S, LONGEST_S = 0.05, 2.0
"""The pauses between tries (s)."""


class Refused(RepertoryError):
    """The server's answer is no: trying again would not change it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}"


class Unreachable(RepertoryError):
    """No answer within the client's patience."""


class Tries:
    """The tries of one request.

    Args:
        patience_s: for how long it is tried (s).
        chance: a number in [0, 1), so that clients do not all come at once.
    """

    def __init__(self, patience_s: float, chance: Callable[[], float] = random.random) -> None:
        self._deadline, self._patience_s = monotonic() + patience_s, patience_s
        self._chance, self._pause, self.made = chance, FIRST_S, 0

    def pause_after(self, response: Any = None, error: Exception | None = None) -> float | None:
        """How long to wait before the next try (s); None: this answer stands.

        Raises:
            Refused: the answer is no.
            Unreachable: there is no time left for another try.
        """
        self.made += 1
        if response is not None and response.status_code < 400:
            return None
        if response is not None and not _passing(response):
            raise _refusal(response)
        pause = max(self._pause * (0.5 + self._chance() / 2), _asked_for(response))
        self._pause = min(2 * self._pause, LONGEST_S)
        if monotonic() + pause > self._deadline:
            last = f"{response.status_code}: {response.text[:200]}" if response is not None else repr(error)
            raise Unreachable(f"no answer within {self._patience_s:g} s and {self.made} tries; the last: {last}")
        return pause


def _passing(response: Any) -> bool:
    return response.status_code in AGAIN or OURS not in response.headers


def _asked_for(response: Any) -> float:
    said = response.headers.get("retry-after", "") if response is not None else ""
    return min(float(said), LONGEST_S) if said.isdigit() else 0.0


def _refusal(response: Any) -> Refused:
    try:
        error = response.json()["error"]
        return Refused(response.status_code, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return Refused(response.status_code, "unknown", response.text[:200])
