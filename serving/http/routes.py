"""The routes: HTTP in, what the desk says out."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from runtime.records import Json
from serving.access import Caller
from serving.desk import Desk
from serving.errors import Busy, ServingError
from serving.http.admin import steering
from serving.http.asking import KEY, STATUSES, TEAM, WISH, asker, tell
from serving.http.bodies import Opening, RunDone, SessionEnded, SessionOpened, Turn, TurnTaken, Wrong
from serving.http.judging import feedback
from serving.openai_api.answers import error_of, problem_of, speaks_openai
from serving.openai_api.asked import BadChat
from serving.openai_api.routes import openai_routes
from serving.rollout.plan import RewardRule

SESSION = Annotated[str, Path(max_length=200)]
DRAWN = Opening()
"""What a request without a body opens."""
WRONG: dict[int | str, dict[str, Any]] = {status: {"model": Wrong} for status in STATUSES}
"""The errors that any route may answer with."""


def application(desk: Desk, rule: RewardRule) -> FastAPI:
    """The router's HTTP application, on a desk. ``rule``: what rewards from outside may be."""

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncGenerator[None]:
        looking = asyncio.create_task(desk.keep_looking())
        yield
        looking.cancel()
        desk.close()

    app = FastAPI(title="Repertory", version="1", lifespan=alive, responses=WRONG)
    app.add_exception_handler(ServingError, _wrong)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    _health(app, desk)
    _sessions(app, desk)
    steering(app, desk)
    feedback(app, desk, rule)
    openai_routes(app, desk)
    return app


def _health(app: FastAPI, desk: Desk) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        """The router is alive."""
        return {"ok": True}

    @app.get("/readyz")
    async def readyz() -> dict[str, bool]:
        """Every team has a current version that is ready."""
        if why := desk.views.unready():
            raise Busy("not_ready", why)
        return {"ready": True}


def _sessions(app: FastAPI, desk: Desk) -> None:
    known = asker(desk)

    @app.post("/v1/teams/{team}/sessions", status_code=201)
    async def open_session(
        team: TEAM, response: Response, caller: Caller = known,
        opening: Annotated[Opening, Body()] = DRAWN, key: KEY = "", wish: WISH = "",
    ) -> SessionOpened:  # fmt: skip
        """Open a session. It stays with its version to its end."""
        opened = await desk.open(team, caller, opening.payload(), wish=wish, key=key)
        tell(response, opened.session, opened.version)
        return SessionOpened(session=opened.session, team=team, version=opened.version)

    @app.post("/v1/teams/{team}/sessions/{session}/turns")
    async def take_turn(
        team: TEAM, session: SESSION, response: Response, caller: Caller = known, key: KEY = "", wish: WISH = ""
    ) -> TurnTaken:
        """Play the next turn: one role decides until it passes on, or ends the session.

        With the header `Idempotency-Key` a turn is played once, and answered the same however often it is asked for.
        """
        version, turn = await desk.turn(team, caller, session, key=key and f"client:{key}", wish=wish)
        tell(response, session, version)
        return TurnTaken(**turn, session=session, version=version)

    @app.delete("/v1/teams/{team}/sessions/{session}")
    async def end_session(team: TEAM, session: SESSION, response: Response, caller: Caller = known) -> SessionEnded:
        """End a session."""
        version = await desk.end(team, caller, session)
        tell(response, session, version)
        return SessionEnded(session=session, version=version)

    @app.post("/v1/teams/{team}/runs")
    async def run(
        team: TEAM, response: Response, caller: Caller = known,
        opening: Annotated[Opening, Body()] = DRAWN, key: KEY = "", wish: WISH = "",
    ) -> RunDone:  # fmt: skip
        """Open a session and play it to its end."""
        opened, turns = await desk.run(team, caller, opening.payload(), wish=wish, key=key)
        tell(response, opened.session, opened.version)
        return RunDone(session=opened.session, team=team, version=opened.version, **_summary(turns))


def _summary(turns: list[Mapping[str, Json]]) -> dict[str, Any]:
    last = turns[-1]
    return {
        "turns": [Turn(**t) for t in turns],
        "outcome": last["outcome"],
        "success": last["success"],
        "cost_usd": sum(t["cost_usd"] for t in turns),
        "degraded": any(t["degraded"] for t in turns),
    }


async def _wrong(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServingError), "it is what it was registered for"
    headers = {"retry-after": str(error.retry_after_s)} if isinstance(error, Busy) else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(problem_of(error, request.url.path), status_code=error.status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    """What the framework refuses: a path or method that there is not, a body that cannot be read."""
    assert isinstance(error, HTTPException), "it is what it was registered for"
    code = {404: "no_such_route", 405: "no_such_method"}.get(error.status_code, "invalid")
    refused = ServingError(code, str(error.detail))
    refused.status = error.status_code
    return JSONResponse(problem_of(refused, request.url.path), status_code=error.status_code, headers=error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "it is what it was registered for"
    said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    if speaks_openai(request.url.path):
        places = [e["loc"][1] for e in error.errors() if len(e["loc"]) > 1]
        return JSONResponse(error_of(BadChat("invalid_request", said, str(places[0]) if places else "")), 400)
    return JSONResponse({"error": {"code": "invalid", "message": said}}, status_code=422)
