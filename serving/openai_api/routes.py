"""The routes that any client of OpenAI's can use."""

import time
import uuid
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import FastAPI, Header, Response
from fastapi.responses import StreamingResponse

from serving.access import Caller
from serving.desk import Desk
from serving.errors import UnknownVersion
from serving.http.asking import STATUSES, WISH, asker, told
from serving.openai_api.answers import Told, collected, refused, streamed
from serving.openai_api.bodies import Completion
from serving.openai_api.models import Meant, Models, no_model
from serving.openai_api.reading import chat_of
from serving.openai_api.shown import ChatCompletion, Faulted, ModelList, ModelShown

FAULTED: dict[int | str, dict[str, Any]] = {status: {"model": Faulted} for status in STATUSES}
"""The errors that these routes may answer with."""
SESSION = Annotated[str, Header(alias="x-session-id", max_length=200)]


def openai_routes(app: FastAPI, desk: Desk) -> None:
    """Add the routes."""
    models = Models(desk)
    _listing(app, desk, models)
    _chatting(app, desk, models)


def _listing(app: FastAPI, desk: Desk, models: Models) -> None:
    known = asker(desk)

    @app.get("/v1/models", responses=FAULTED)
    async def list_models(caller: Caller = known) -> ModelList:
        """The roles that a language model plays, of every version that is ready."""
        return ModelList(data=[ModelShown(**m) for m in await desk.away(models.listed)])

    @app.get("/v1/models/{model:path}", responses=FAULTED)
    async def show_model(model: str, caller: Caller = known) -> ModelShown:
        """One of them."""
        found = [m for m in await desk.away(models.listed) if m["id"] == model]
        if not found:
            raise no_model(model)
        return ModelShown(**found[0])


def _chatting(app: FastAPI, desk: Desk, models: Models) -> None:
    known = asker(desk)

    @app.post(
        "/v1/chat/completions",
        response_model=ChatCompletion,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **FAULTED},
    )
    async def complete(
        body: Completion, response: Response, caller: Caller = known, session: SESSION = "", wish: WISH = ""
    ) -> Any:
        """Have a role's language model go on with a chat.

        With the header `x-session-id` all chats of that name stay with one version; without, each is by itself.
        """
        meant: Meant = await desk.away(models.meant, body.model)
        chat = chat_of(body, meant.role)
        try:
            opened = await desk.talk(meant.team, caller, session, (meant.version, wish))
        except UnknownVersion:
            raise no_model(body.model) from None
        pieces = desk.say(meant.team, opened, chat)
        saying = Told(uuid.uuid4().hex, f"{meant.team}/{meant.role}@{opened.version}", int(time.time()))
        headers = told(opened.session, opened.version)
        if not body.stream:
            response.headers.update(headers)
            async with aclosing(pieces):
                return await collected(saying, pieces)
        first = await anext(pieces)
        if first.get("kind") == "refused":
            raise refused(first)
        counted = bool(body.stream_options and body.stream_options.include_usage)
        events = streamed(saying, first, pieces, counted)
        return StreamingResponse(
            events, media_type="text/event-stream", headers={**headers, "cache-control": "no-store"}
        )
