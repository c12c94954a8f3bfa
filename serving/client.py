"""Talking to a server from Python: every request has an idempotency key and is tried again until it is answered.

client = Client("http://127.0.0.1:8000", token)
session = client.open("supply_chain", draw={"index": 3})
for turn in session:
    print(turn.agent, turn.decisions)
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any, Self, TypedDict, Unpack

import httpx2

from runtime.records import Json
from serving.http.bodies import RunDone, SessionEnded, SessionOpened, TurnTaken
from serving.trying import Refused, Tries, Unreachable

__all__ = ["Asking", "AsyncClient", "AsyncSession", "Client", "Refused", "Session", "Unreachable"]
PATIENCE_S = 60.0
"""For how long a request is tried (s): a killed version, router or proxy is back long before."""
ANSWER_S = 90.0
"""How long one answer may take (s)."""


class Asking(TypedDict, total=False):
    """How a session is opened. Where neither case is given, the team draws its first."""

    scenario: Mapping[str, Json] | None
    """A case that is sent: ``visible`` and, where the world is simulated, ``truth``; ``id``, ``seed``."""
    draw: Mapping[str, Json] | None
    """A case that the team draws: ``split``, ``seed``, ``index`` for its generator."""
    version: str
    """The one wanted; empty: whichever is due."""
    key: str
    """The same key opens the same session; empty: a new one."""


def _headers(key: str, version: str = "") -> dict[str, str]:
    return {"idempotency-key": key or uuid.uuid4().hex, **({"x-agent-version": version} if version else {})}


def _opening(how: Asking) -> tuple[dict[str, str], dict[str, Json]]:
    """The headers and the body that open a session."""
    scenario, draw = how.get("scenario"), how.get("draw")
    body: dict[str, Json] = {"scenario": dict(scenario) if scenario else None, "draw": dict(draw) if draw else None}
    return _headers(how.get("key", ""), how.get("version", "")), body


def _given(session: "Session | AsyncSession | RunDone", value: float, decision: str | None) -> dict[str, Json]:
    name = session.session if isinstance(session, RunDone) else session.id
    return {"team": session.team, "session": name, "value": value, "decision": decision}


def _settings(url: str, token: str, answer_s: float) -> dict[str, Any]:
    return {"base_url": url, "headers": {"authorization": f"Bearer {token}"}, "timeout": answer_s}


class Client:
    """A server, for synchronous code; threads may share it.

    Args:
        url: where it answers.
        token: who we are.
        patience_s: for how long a request is tried (s).
        answer_s: how long one answer may take (s).
    """

    def __init__(self, url: str, token: str, *, patience_s: float = PATIENCE_S, answer_s: float = ANSWER_S) -> None:
        self._http = httpx2.Client(**_settings(url, token, answer_s))
        self._patience_s = patience_s
        self.retried = 0
        """Tries that were not the first."""

    def open(self, team: str, **how: Unpack[Asking]) -> "Session":
        """Open a session on a case: one that is sent, or one that the team draws.

        Args:
            team: its name.
            how: ``scenario``, ``draw``, ``version``, ``key`` (``Asking``).

        Raises:
            Refused: the server says no.
            Unreachable: it does not answer.
        """
        made = self.request("POST", f"/v1/teams/{team}/sessions", *_opening(how))
        return Session(self, SessionOpened.model_validate(made))

    def run(self, team: str, **how: Unpack[Asking]) -> RunDone:
        """Open a session and play it to its end. As ``open``."""
        made = self.request("POST", f"/v1/teams/{team}/runs", *_opening(how))
        return RunDone.model_validate(made)

    def feedback(
        self, session: "Session | RunDone", value: float, *, decision: str | None = None, key: str = ""
    ) -> Json:
        """Say what a session was worth, or a decision in it (its ``id``). Raises as ``open``."""
        return self.request("POST", "/v1/feedback", _headers(key), _given(session, value, decision))

    def request(self, method: str, path: str, headers: Mapping[str, str], body: Json = None) -> Json:
        """The answer to a request, tried again while that may help.

        Raises:
            Refused: the answer is no.
            Unreachable: there is none.
        """
        tries = Tries(self._patience_s)
        while True:
            response, error = None, None
            try:
                response = self._http.request(method, path, headers=dict(headers), json=body)
            except httpx2.TransportError as failure:
                error = failure
            pause = tries.pause_after(response, error)
            if pause is None:
                assert response is not None, "what stands is an answer"
                return response.json()
            self.retried += 1
            time.sleep(pause)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Open:
    """What an open session is, whoever waits for its turns."""

    def __init__(self, opened: SessionOpened) -> None:
        self._at = f"/v1/teams/{opened.team}/sessions/{opened.session}"
        self.id, self.team, self.version = opened.session, opened.team, opened.version
        self.ended = False


class Session(_Open):
    """An open session."""

    def __init__(self, client: Client, opened: SessionOpened) -> None:
        super().__init__(opened)
        self._client = client

    def turn(self, key: str = "") -> TurnTaken:
        """Play the next turn; with a key, once for the same key."""
        turn = TurnTaken.model_validate(self._client.request("POST", f"{self._at}/turns", _headers(key)))
        self.ended = turn.ended
        return turn

    def __iter__(self) -> Generator[TurnTaken]:
        while not self.ended:
            yield self.turn()

    def end(self) -> SessionEnded:
        """End it."""
        self.ended = True
        return SessionEnded.model_validate(self._client.request("DELETE", self._at, _headers("")))


class AsyncClient:
    """A server, for asynchronous code. Everything as ``Client``."""

    def __init__(self, url: str, token: str, *, patience_s: float = PATIENCE_S, answer_s: float = ANSWER_S) -> None:
        limits = httpx2.Limits(max_connections=None)
        self._http = httpx2.AsyncClient(**_settings(url, token, answer_s), limits=limits)
        self._patience_s = patience_s
        self.retried = 0
        """Tries that were not the first."""

    async def open(self, team: str, **how: Unpack[Asking]) -> "AsyncSession":
        """Open a session on a case."""
        made = await self.request("POST", f"/v1/teams/{team}/sessions", *_opening(how))
        return AsyncSession(self, SessionOpened.model_validate(made))

    async def run(self, team: str, **how: Unpack[Asking]) -> RunDone:
        """Open a session and play it to its end."""
        made = await self.request("POST", f"/v1/teams/{team}/runs", *_opening(how))
        return RunDone.model_validate(made)

    async def feedback(
        self, session: "AsyncSession | RunDone", value: float, *, decision: str | None = None, key: str = ""
    ) -> Json:
        """Say what a session was worth, or a decision in it."""
        return await self.request("POST", "/v1/feedback", _headers(key), _given(session, value, decision))

    async def request(self, method: str, path: str, headers: Mapping[str, str], body: Json = None) -> Json:
        """The answer to a request, tried again while that may help."""
        tries = Tries(self._patience_s)
        while True:
            response, error = None, None
            try:
                response = await self._http.request(method, path, headers=dict(headers), json=body)
            except httpx2.TransportError as failure:
                error = failure
            pause = tries.pause_after(response, error)
            if pause is None:
                assert response is not None, "what stands is an answer"
                return response.json()
            self.retried += 1
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncSession(_Open):
    """An open session."""

    def __init__(self, client: AsyncClient, opened: SessionOpened) -> None:
        super().__init__(opened)
        self._client = client

    async def turn(self, key: str = "") -> TurnTaken:
        """Play the next turn; with a key, once for the same key."""
        turn = TurnTaken.model_validate(await self._client.request("POST", f"{self._at}/turns", _headers(key)))
        self.ended = turn.ended
        return turn

    async def __aiter__(self) -> AsyncGenerator[TurnTaken]:
        while not self.ended:
            yield await self.turn()

    async def end(self) -> SessionEnded:
        """End it."""
        self.ended = True
        return SessionEnded.model_validate(await self._client.request("DELETE", self._at, _headers("")))
