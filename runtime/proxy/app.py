"""The proxy as an ASGI application: what becomes of a chat, and of a word about a conversation."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any, TypeVar

import httpx2
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from runtime.proxy.asked import asked_of
from runtime.proxy.desk import Desk
from runtime.proxy.door import Door, Receive, Refused, bounded
from runtime.proxy.exchange import Exchange, Spent
from runtime.proxy.forwarding import Heard, Message, Send, Unreachable, Upstream, passed_back
from runtime.proxy.ours import NoAnswer, Ours, as_heard, completion, events
from runtime.proxy.said import Said, said_of
from runtime.proxy.settings import Settings
from runtime.proxy.switch import Switch
from runtime.records import Closed, Json

_log = logging.getLogger(__name__)
B = TypeVar("B", bound=Closed)
CHAT = "/chat/completions"


class Judged(Closed):
    """What a conversation, or one decision in it, was worth."""

    session: Annotated[str, Field(min_length=1, max_length=200)]
    value: Annotated[float, Field(allow_inf_nan=False)]
    decision: Annotated[str, Field(max_length=400)] | None = None
    source: Annotated[str, Field(max_length=200)] = ""


class Over(Closed):
    """How a conversation ended."""

    session: Annotated[str, Field(min_length=1, max_length=200)]
    success: bool = False
    outcome: dict[str, Json] = Field(default_factory=dict[str, Json])


class Proxy:
    """The proxy, with all that it holds open.

    Args:
        settings: what it was told.
        desk: which conversations there are.
        upstream: whose answers go through.
        ours: a trained version in its place, for one role; None: none.
    """

    def __init__(self, settings: Settings, desk: Desk, upstream: Upstream, ours: Ours | None) -> None:
        self._settings, self._desk, self._upstream, self.ours = settings, desk, upstream, ours

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on one request below ``/v1``, until it is answered or its client has gone."""
        request = Request(scope, receive)
        body = await bounded(request, self._settings.bounds.body_bytes)
        work = asyncio.ensure_future(self._worked(request, body, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            with suppress(asyncio.CancelledError, Refused):
                await work

    async def _worked(self, request: Request, body: bytes, send: Send) -> None:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        asked = asked_of(body) if request.method == "POST" and path == CHAT else None
        if asked is None:
            await self._through(request, path, body, send, None, attempts=1)
            return
        try:
            exchange = await self._desk.begin(asked, request.headers)
        except Exception:  # noqa: BLE001 - a fault of ours: the program's call goes through all the same
            _log.exception("a question is not recorded")
            await self._through(request, path, body, send, None, attempts=1)
            return
        noted = _Noted(self._desk, exchange)
        try:
            await self._decided(request, path, body, send, noted)
        finally:
            noted.nothing()

    async def _decided(self, request: Request, path: str, body: bytes, send: Send, noted: "_Noted") -> None:
        """Have the trained version answer where it plays the role, or else the upstream."""
        attempts = 1
        if self.ours is not None and self.ours.plays(noted.exchange.found, noted.exchange.role):
            with suppress(NoAnswer):
                await self._ours(self.ours, noted, send)
                return
            attempts = 2
        await self._through(request, path, body, send, noted, attempts=attempts)

    async def _ours(self, ours: Ours, noted: "_Noted", send: Send) -> None:
        """Have the trained version answer. Raises NoAnswer before anything is sent."""
        exchange = noted.exchange
        said = await ours.ask(exchange.found, exchange.asked, exchange.seen, exchange.hint)
        heard = as_heard(said, exchange.hint)
        noted.said(said, heard, Spent(model=ours.name, ms=exchange.ms))
        await _sent(exchange, heard, send)

    async def _through(
        self, request: Request, path: str, body: bytes, send: Send, noted: "_Noted | None", *, attempts: int
    ) -> None:
        """Have the upstream answer, and note what it says."""
        query = request.scope.get("query_string", b"").decode("latin-1")
        where = f"{path}?{query}" if query else path
        response = await self._answered(request.method, where, request.headers.raw, body)
        heard = Heard(response, self._settings.bounds.answer_bytes)
        try:
            more = [(b"x-session-id", noted.exchange.found.id.encode())] if noted else []
            await passed_back(heard, send, more)
        finally:
            if noted is not None:
                noted.heard(heard, self._settings.provider, attempts)
            await response.aclose()

    async def _answered(self, *question: Any) -> httpx2.Response:
        try:
            return await self._upstream.ask(*question)
        except Unreachable as error:
            raise Refused(502, "upstream_unreachable", f"the upstream gave no answer: {error}") from None


class _Noted:
    """One exchange, whose end is noted once."""

    def __init__(self, desk: Desk, exchange: Exchange) -> None:
        self._desk, self.exchange, self._done = desk, exchange, False

    def said(self, said: Said | None, heard: Said | None, spent: Spent) -> None:
        """What the model said, what the program heard, and what it took."""
        if self._done:
            return
        self._done = True
        try:
            self._desk.end(self.exchange, said, heard, spent)
        except Exception:  # noqa: BLE001 - a fault of ours, and none of the program's
            _log.exception("an answer is not recorded")
            self.exchange.found.lost = True

    def heard(self, heard: Heard, provider: str, attempts: int) -> None:
        """What went through from the upstream."""
        body = heard.body()
        if body is None and not self._done:
            self._done = True
            self._desk.abandon(self.exchange)
            return
        well = heard.response.status_code == 200 and body is not None
        said = said_of(body, heard.kind) if well and body is not None else None
        if said is None:
            self.nothing()
            return
        model = f"{provider}/{self.exchange.asked.model}"
        self.said(said, said, Spent(model=model, ms=self.exchange.ms, attempts=attempts, degraded=attempts > 1))

    def nothing(self) -> None:
        """Nobody said anything, or nothing whole."""
        self.said(None, None, Spent(model="", ms=self.exchange.ms, degraded=True))


def application(settings: Settings, desk: Desk) -> Door:
    """The whole application. What it opens it closes when the server stops."""
    ours = Ours(settings.serve) if settings.serve else None
    upstream = Upstream(settings.upstream, settings.bounds)

    @asynccontextmanager
    async def alive(_: Starlette) -> AsyncGenerator[None]:
        looking = [asyncio.create_task(desk.keep_looking())]
        if ours is not None and settings.serve is not None and settings.serve.redis:
            looking.append(asyncio.create_task(Switch(settings.serve, ours).keep_looking()))
        yield
        for task in looking:
            task.cancel()
        await asyncio.to_thread(desk.close)
        await upstream.close()
        if ours is not None:
            await ours.close()

    routes = [
        Route("/proxy/health", _healthy, methods=["GET"]),
        Route("/proxy/feedback", _judging(desk), methods=["POST"]),
        Route("/proxy/end", _ending(desk), methods=["POST"]),
        Mount("/v1", Proxy(settings, desk, upstream, ours)),
    ]
    return Door(Starlette(routes=routes, lifespan=alive, exception_handlers={Refused: _refused}), settings)


async def _refused(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return refused.response()


async def _healthy(_: Request) -> Response:
    return JSONResponse({"ok": True})


def _judging(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    async def judge(request: Request) -> Response:
        given = await _read(request, Judged)
        if not await desk.judge(given.session, given.value, given.decision, given.source):
            raise Refused(404, "no_such_session", "no conversation of that name is known")
        return JSONResponse({"noted": True})

    return judge


def _ending(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    async def end(request: Request) -> Response:
        given = await _read(request, Over)
        if not await desk.finish(given.session, given.outcome, given.success):
            raise Refused(404, "no_such_session", "no conversation of that name is open")
        return JSONResponse({"ended": True})

    return end


async def _read(request: Request, kind: type[B]) -> B:
    try:
        return kind.model_validate_json(await bounded(request, 1_000_000))
    except ValidationError as error:
        raise Refused(422, "bad_request", error.errors()[0]["msg"]) from None


async def _sent(exchange: Exchange, heard: Said, send: Send) -> None:
    """Send an answer of ours, as the program has asked for it: whole or as a stream."""
    asked = exchange.asked
    parts = [*events(heard, asked)] if asked.stream else [json.dumps(completion(heard, asked)).encode()]
    kind = b"text/event-stream" if asked.stream else b"application/json"
    headers = [(b"content-type", kind), (b"x-session-id", exchange.found.id.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
