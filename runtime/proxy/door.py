"""What holds for every request: who may ask, how many at once, how large a body is, how long an answer takes."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from runtime.proxy.forwarding import TOKEN, Message, Send
from runtime.proxy.settings import Settings

Receive = Callable[[], Awaitable[Message]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
RETRY_AFTER_S = 1
"""What a client is told to wait where there is too much to do (s)."""


class Refused(Exception):
    """A request that is not passed on, or not answered."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message

    def response(self) -> Response:
        """The error, in the shape that clients of OpenAI's expect."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": None, "code": self.code}
        headers = {"retry-after": str(RETRY_AFTER_S)} if self.status == 503 else {}
        return JSONResponse({"error": error}, self.status, headers)


class Door:
    """Wraps the application: only so many requests at once, only from those who show the token."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app, self._settings, self._open = app, settings, 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or one part of the server's life."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        self._open += 1
        try:
            self._look(scope)
            async with asyncio.timeout(self._settings.bounds.answer_s):
                await self._app(scope, receive, answer.send)
        except TimeoutError:
            late = Refused(504, "late", f"no answer within {self._settings.bounds.answer_s:g} s")
            await answer.refuse(late, scope, receive)
        except ClientDisconnect:
            pass  # it went before it had asked
        except Refused as refused:
            await answer.refuse(refused, scope, receive)
        finally:
            self._open -= 1

    def _look(self, scope: Message) -> None:
        if self._settings.token:
            shown = dict(scope["headers"]).get(TOKEN, b"")
            if not hmac.compare_digest(shown, self._settings.token.encode()):
                raise Refused(401, "no_token", "send the proxy's token in x-proxy-token")
        if self._open > self._settings.bounds.open:
            raise Refused(503, "overloaded", f"{self._settings.bounds.open} requests are being worked on: try again")


class _Answer:
    """Passes an answer on, and knows whether it has begun: then there is no other any more."""

    def __init__(self, send: Send) -> None:
        self._send, self._begun = send, False

    async def send(self, message: Message) -> None:
        self._begun = True
        await self._send(message)

    async def refuse(self, refused: Refused, scope: Message, receive: Receive) -> None:
        if not self._begun:
            await refused.response()(scope, receive, self._send)


async def bounded(request: Request, limit: int) -> bytes:
    """A request's body. Raises Refused as soon as it is known to be too large."""
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limit:
        raise Refused(413, "too_large", f"the body has {int(length)} bytes; {limit} are allowed")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise Refused(413, "too_large", f"the body has more than {limit} bytes")
        parts.append(part)
    return b"".join(parts)
