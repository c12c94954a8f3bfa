"""A little MCP server: ``python shop_server.py`` over stdio, ``python shop_server.py PORT`` over HTTP."""

import os
import sys
import time

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")
ORDERS: dict[str, str] = {}
LINES: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def price(article: str) -> dict[str, float]:
    """The price of an article, in US dollars."""
    return {"usd": {"nut": 0.1, "bolt": 0.25}[article]}


@server.tool()
def order(article: str, idempotency_key: str) -> dict[str, int]:
    """Order an article; how many orders there are then."""
    ORDERS.setdefault(idempotency_key, article)
    return {"orders": len(ORDERS)}


@server.tool()
def slow(seconds: float) -> str:
    """Wait so long (s)."""
    time.sleep(seconds)
    return "done"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def pid() -> int:
    """The server's process."""
    return os.getpid()


@server.tool()
def crash() -> str:
    """End without an answer."""
    os._exit(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
