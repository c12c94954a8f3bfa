"""Reaching versions over Ray Serve's handles: again on the same version while its replicas come back."""

import asyncio
import random
from collections.abc import AsyncGenerator
from time import monotonic
from typing import Any

from ray import serve
from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, RayServeException
from ray.serve.handle import DeploymentHandle

from serving.errors import Busy, Late
from serving.openai_api.asked import Chat, Piece
from serving.playing import Answer
from serving.server.seat import app_name

FIRST_S, LONGEST_S = 0.02, 0.5
"""The pauses between tries (s): a replica that was killed is back after about two seconds."""


class ServeReach:
    """Versions as Serve applications (``serving.desk.Reach``)."""

    def __init__(self) -> None:
        self._handles: dict[str, DeploymentHandle[Any]] = {}

    async def turn(self, team: str, alias: str, session: str, key: str, within_s: float) -> Answer:
        """Have a version play a turn, as often as it takes: the key makes it one turn."""
        name, deadline, pause = app_name(team, alias), monotonic() + within_s, FIRST_S
        while (left := deadline - monotonic()) > 0:
            try:
                return await self._ask(name, session, key, left)
            except BackPressureError:
                raise Busy("overloaded", f"too many turns wait for {alias}: try again") from None
            except TimeoutError:
                raise Late("late", f"the turn was not over within {within_s:g} s; the same key waits for it") from None
            except (RayActorError, RayServeException):
                self._handles.pop(name, None)
            await asyncio.sleep(min(pause * random.uniform(0.5, 1.0), max(deadline - monotonic(), 0)))
            pause = min(2 * pause, LONGEST_S)
        raise Busy("unreachable", f"{alias} could not be reached within {within_s:g} s: try again")

    async def say(self, team: str, alias: str, chat: Chat, within_s: float) -> AsyncGenerator[Piece]:
        """Have a version go on with a chat; tried again for as long as no piece has come."""
        name, deadline, pause, begun = app_name(team, alias), monotonic() + within_s, FIRST_S, False
        while (left := deadline - monotonic()) > 0:
            pieces: Any = None
            try:
                pieces = self._handle(name).options(stream=True).say.remote(chat)
                while (piece := await asyncio.wait_for(anext(pieces, None), left)) is not None:
                    begun, left = True, deadline - monotonic()
                    yield piece
                return  # noqa: TRY300 - what follows is the next try
            except BackPressureError:
                raise Busy("overloaded", f"too many turns wait for {alias}: try again") from None
            except TimeoutError:
                raise Late("late", f"the answer was not over within {within_s:g} s") from None
            except (RayActorError, RayServeException):
                self._handles.pop(name, None)
                if begun:
                    raise Busy("cut_off", f"{alias} was lost in the middle of its answer: ask again") from None
            finally:
                if pieces is not None:
                    pieces.cancel()
            await asyncio.sleep(min(pause * random.uniform(0.5, 1.0), max(deadline - monotonic(), 0)))
            pause = min(2 * pause, LONGEST_S)
        raise Busy("unreachable", f"{alias} could not be reached within {within_s:g} s: try again")

    def _handle(self, name: str) -> Any:
        handle = self._handles.get(name)
        if handle is None:
            handle = self._handles[name] = serve.get_app_handle(name)
        return handle

    async def _ask(self, name: str, session: str, key: str, within_s: float) -> Answer:
        method: Any = self._handle(name).turn
        async with asyncio.timeout(within_s):
            return await method.remote(session, key)
