"""Tools of an MCP server, over stdio or HTTP, as a team's own.

    server = McpServer(Command("python", ("shop_server.py",)))       # or McpServer("https://shop.example/mcp")
    tools = server.tools(only=("search", "order"))
    team = Team(…, tools={**tools, "done": tool(done, ends=True)})

A server is connected to when it is first needed, and again after it was lost. The idempotency key travels in the
call's ``_meta`` and, where the tool takes an argument of that name, as an argument.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from runtime.background import Loop
from runtime.errors import ServiceUnavailable
from runtime.records import Json
from runtime.types import Outside, Tool

KEY = "idempotency_key"
"""The argument, and the name in ``_meta``, that carries the idempotency key."""
CONNECT_S = 15.0
"""How long a server may take to start and introduce itself (s): an interpreter with many imports needs seconds."""
PAGES = 100
"""Pages of the list of tools that are read: a server that never ends it must not hang the start."""


class McpToolFailed(Exception):
    """The server answered that the tool failed."""


@dataclass(frozen=True, slots=True)
class Command:
    """A server that is started here and spoken to over its stdin and stdout."""

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables on top of a few harmless ones; it sees no others of this process."""


class McpServer:
    """A server, connected to when needed. Threads may share it."""

    def __init__(
        self, target: str | Command, *, timeout_s: float = 30.0, loose: bool = False, token_variable: str = ""
    ) -> None:
        """Say where it is; nothing is connected yet.

        Args:
            target: a URL, or a command to start.
            timeout_s: how long a call may take.
            loose: coerce wrongly typed answers, and record it.
            token_variable: the environment variable with the bearer token, for a URL.
        """
        self._target, self._timeout_s, self._loose, self._token = target, timeout_s, loose, token_variable
        self._loop = Loop(f"mcp {self.name}")
        self._lock = Lock()
        self._client: Any = None
        self._leave: asyncio.Event | None = None
        self._left: Any = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._target if isinstance(self._target, str) else " ".join((self._target.program, *self._target.args))

    def tools(self, only: tuple[str, ...] = ()) -> dict[str, Tool]:
        """The server's tools by name.

        Args:
            only: these; empty: all.

        Raises:
            ServiceUnavailable: the server cannot be reached, or lacks one of them.
        """
        found = {t.name: self._tool(t) for t in self._loop.run(self._listed(self._connected()), self._timeout_s)}
        missing = [n for n in only if n not in found]
        if missing:
            known = ", ".join(found) or "none"
            raise ServiceUnavailable(f"MCP server {self.name}", f"has no tool {', '.join(missing)}", f"it has {known}")
        return {n: t for n, t in found.items() if not only or n in only}

    def call(self, name: str, args: Mapping[str, Json], key: str, *, again: bool = False) -> Json:
        """Have a tool called.

        Args:
            name: the tool's.
            args: its arguments.
            key: the idempotency key.
            again: call once more where the connection broke, for calls that may be repeated.

        Raises:
            McpToolFailed: the tool answered with an error.
            TimeoutError: there was no answer in time.
            ServiceUnavailable: the server cannot be reached.
        """
        client = self._connected()
        try:
            return _value(self._loop.run(self._asked(client, name, args, key), self._timeout_s))
        except (McpToolFailed, TimeoutError):
            raise
        except Exception as error:
            if _answered(error):
                raise McpToolFailed(str(error)) from error
            self._drop(client)
            if again:
                return self.call(name, args, key)
            raise ServiceUnavailable(f"MCP server {self.name}", f"was lost: {error!r}", "see its log") from error

    def close(self) -> None:
        """Disconnect, and end a server that was started here."""
        with self._lock:
            self._disconnect()
        self._loop.close()

    def _tool(self, described: Any) -> Tool:
        hints = described.annotations
        again = bool(hints and (hints.read_only_hint or hints.idempotent_hint))
        schema: dict[str, Any] = described.input_schema
        takes_key = KEY in schema.get("properties", {})

        def run(_world: object, **args: Json) -> Json:
            key = args.pop(KEY, "")
            return self.call(described.name, {**args, KEY: key} if takes_key else args, key, again=again or takes_key)

        return Tool(
            name=described.name,
            description=described.description or described.name,
            input_schema=_without(schema, KEY),
            output_schema=described.output_schema or {},
            run=run,
            loose=self._loose,
            outside=Outside(timeout_s=self._timeout_s, key=KEY, idempotent=again or takes_key),
        )

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None or self._left.done():
                self._disconnect()
                self._connect()
            return self._client

    def _connect(self) -> None:
        ready: asyncio.Future[Any] | None = None

        async def begin() -> Any:
            nonlocal ready
            ready = asyncio.get_running_loop().create_future()
            self._leave = asyncio.Event()
            self._left = asyncio.ensure_future(self._served(ready, self._leave))
            return await ready

        try:
            self._client = self._loop.run(begin(), CONNECT_S)
        except Exception as error:
            self._disconnect()
            remedy = "is it running, and is the address right?" if isinstance(self._target, str) else "does it start?"
            raise ServiceUnavailable(
                f"MCP server {self.name}", f"cannot be reached: {_root(error)!r}", remedy
            ) from error

    async def _served(self, ready: "asyncio.Future[Any]", leave: asyncio.Event) -> None:
        """Hold the connection open in one task, as the library's cancel scopes want it."""
        from mcp import Client

        try:
            async with Client(self._transport()) as client:
                ready.set_result(client)
                await leave.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ConnectionError("cancelled"))
            elif not isinstance(error, Exception):
                raise

    def _transport(self) -> Any:
        if isinstance(self._target, Command):
            from mcp import StdioServerParameters

            env = dict(self._target.env)
            return StdioServerParameters(command=self._target.program, args=list(self._target.args), env=env)
        if not self._token:
            return self._target
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {os.environ.get(self._token, '')}"}
        return streamable_http_client(self._target, http_client=httpx2.AsyncClient(headers=headers))

    def _drop(self, client: object) -> None:
        with self._lock:
            if self._client is client:
                self._disconnect()

    def _disconnect(self) -> None:
        self._client = None
        left, leave = self._left, self._leave
        self._left = self._leave = None
        if left is not None and leave is not None:
            with suppress(TimeoutError):
                self._loop.run(_ended(left, leave), CONNECT_S)

    async def _asked(self, client: Any, name: str, args: Mapping[str, Json], key: str) -> Any:
        return await client.call_tool(name, dict(args), self._timeout_s, meta={KEY: key})

    async def _listed(self, client: Any) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return found


async def _ended(left: "asyncio.Task[None]", leave: asyncio.Event) -> None:
    leave.set()
    _, running = await asyncio.wait({left}, timeout=CONNECT_S / 2)
    for task in running:
        task.cancel()
        await asyncio.wait({task}, timeout=CONNECT_S / 2)


def _answered(error: Exception) -> bool:
    """Whether the server itself said so, and so is alive."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.error.code != CONNECTION_CLOSED


def _value(result: Any) -> Json:
    """A result as JSON: what is structured, else the text."""
    text = "\n".join(getattr(c, "text", f"[{c.type}]") for c in result.content)
    if result.is_error:
        raise McpToolFailed(text or "the tool failed and said nothing")
    return text if result.structured_content is None else result.structured_content


def _without(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object's schema without one of its properties."""
    properties = {k: v for k, v in schema.get("properties", {}).items() if k != name}
    required = [r for r in schema.get("required", ()) if r != name]
    rest = {k: v for k, v in schema.items() if k not in ("properties", "required")}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _root(error: BaseException) -> BaseException:
    """What is inside groups of one."""
    inner = getattr(error, "exceptions", None)
    return _root(inner[0]) if inner else error
