"""Where requests come in: how long they take and how they end, by team and version; whose trace they belong to."""

from collections.abc import Collection
from time import monotonic

from runtime.tracing import HEADER, carried, parsed
from serving.http.guard import VERSION, App, Message, Receive, Send
from telemetry.metrics.watching import Watch

NONE = "none"
"""The label of a request that is for no team of ours, or that no version answered."""
TEAMS = "/v1/teams/"
"""Before a team's name in a path."""


class Measured:
    """Wraps an ASGI application.

    Args:
        app: what answers.
        watch: this process' instruments.
        teams: the names that may stand in a label.
    """

    def __init__(self, app: App, watch: Watch, teams: Collection[str]) -> None:
        self._app, self._watch, self._teams = app, watch, teams

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or one part of the server's life."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, version = monotonic(), 500, NONE

        async def told(message: Message) -> None:
            nonlocal status, version
            if message["type"] == "http.response.start":
                status = message["status"]
                version = _version(message) or NONE
            await send(message)

        try:
            with carried(_asker(scope)):
                await self._app(scope, receive, told)
        finally:
            labels = {"team": self._team(scope["path"]), "version": version, "status": str(status)}
            self._watch.meters.record("serving.request.duration", monotonic() - began, **labels)
            if status >= 500:
                self._watch.meters.record("serving.errors", 1, **labels)

    def _team(self, path: str) -> str:
        name = path.removeprefix(TEAMS).partition("/")[0] if path.startswith(TEAMS) else ""
        return name if name in self._teams else NONE


def _asker(scope: Message) -> str:
    """The trace context that a request came with; empty where there is none, or it is malformed."""
    said = next((v for n, v in scope.get("headers", ()) if n.lower() == HEADER.encode()), b"").decode("latin-1")
    return said if parsed(said) else ""


def _version(message: Message) -> str:
    """The version that answered; the header is ours, so it names a registered one."""
    return next((value.decode() for name, value in message.get("headers", []) if name.lower() == VERSION), "")
