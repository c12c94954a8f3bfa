"""What holds for every request: bounds on size, time and number, correlation and version headers, errors as JSON."""

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from sqlalchemy.exc import DBAPIError

from runtime.store import StoreBusy
from serving.errors import Busy, Late, ServingError, TooLarge
from serving.openai_api.answers import problem_of
from serving.settings import Limits

_log = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
CORRELATION, VERSION = b"x-correlation-id", b"x-agent-version"
NO_VERSION = b"none"
"""The version header of an answer that no version gave."""
FREE = ("/healthz", "/readyz")
"""Answered however much there is to do."""
SAFE = re.compile(rb"[\x21-\x7e]{1,200}")
"""What a correlation id may look like."""
MARGIN_S = 5.0
"""By how much a request may outlast the longest thing it waits for (s)."""


class Guard:
    """Wraps an ASGI application.

    Args:
        app: what answers.
        limits: of size, time and number.
    """

    def __init__(self, app: App, limits: Limits) -> None:
        self._app, self._limits, self._busy = app, limits, 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or one part of the server's life."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = _headers(scope)
        asked = said.get(CORRELATION, b"")
        correlation = asked if SAFE.fullmatch(asked) else uuid.uuid4().hex.encode()
        answer = _Answer(send, correlation, scope["path"])
        if scope["path"] in FREE:
            await self._app(scope, receive, answer.send)
            return
        self._busy += 1
        try:
            await self._bounded(scope, receive, answer, said)
        except ServingError as error:
            await answer.error(error)
        finally:
            self._busy -= 1

    async def _bounded(self, scope: Message, receive: Receive, answer: "_Answer", said: dict[bytes, bytes]) -> None:
        if self._busy > self._limits.in_flight:
            raise Busy("overloaded", f"{self._limits.in_flight} requests are being worked on here: try again")
        body = await _body(receive, said, self._limits.body_bytes)
        try:
            async with asyncio.timeout(max(self._limits.turn_s, self._limits.run_s) + MARGIN_S):
                await self._app(scope, _replay(body, receive), answer.send)
        except TimeoutError:
            raise Late("late", "the request took too long") from None
        except ServingError:
            raise
        except (StoreBusy, DBAPIError) as error:
            _log.warning("the store cannot be reached: %s", error)
            raise Busy("store", "the store cannot be reached just now: try again") from None
        except Exception:  # noqa: BLE001 - whatever it was, it is logged, and not told
            _log.exception("a request failed")
            raise Broken("internal", "something went wrong here; it has been logged") from None


class Broken(ServingError):
    """A fault of ours."""

    status = 500


class _Answer:
    """Sends an answer with its headers; an error only where nothing has been sent yet."""

    def __init__(self, send: Send, correlation: bytes, path: str) -> None:
        self._send, self._correlation, self._path, self._begun = send, correlation, path, False

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start":
            self._begun = True
            headers = list(message.get("headers", []))
            names = {name.lower() for name, _ in headers}
            more = ((CORRELATION, self._correlation), (VERSION, NO_VERSION))
            message = {**message, "headers": [*headers, *((n, v) for n, v in more if n not in names)]}
        await self._send(message)

    async def error(self, error: ServingError) -> None:
        """Answer with an error."""
        if self._begun:
            raise error
        body = json.dumps(problem_of(error, self._path)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if isinstance(error, Busy):
            headers.append((b"retry-after", str(error.retry_after_s).encode()))
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _headers(scope: Message) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in scope["headers"]}


async def _body(receive: Receive, said: dict[bytes, bytes], limit: int) -> bytes:
    """The request's body. Raises TooLarge as soon as that is known."""
    length = said.get(b"content-length", b"0")
    if length.isdigit() and int(length) > limit:
        raise TooLarge("too_large", f"the body has {int(length)} bytes; {limit} are allowed")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise TooLarge("too_large", f"the body has more than {limit} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
