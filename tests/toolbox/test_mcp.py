"""Tools of real MCP servers, over stdio and HTTP."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import ServiceUnavailable
from runtime.toolbox.mcp import Command, McpServer
from tests.conftest import WaitUntil
from tests.toolbox.desk import answered, session

SERVER = str(Path(__file__).with_name("shop_server.py"))
STDIO = Command(sys.executable, (SERVER,), {"PYTHONWARNINGS": "ignore"})


@pytest.fixture(scope="module")
def stdio() -> Iterator[McpServer]:
    server = McpServer(STDIO, timeout_s=10.0)
    yield server
    server.close()


@pytest.fixture(scope="module")
def http(wait_until: WaitUntil) -> Iterator[McpServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL)
    wait_until(lambda: _listens(port), "the server")
    server = McpServer(f"http://127.0.0.1:{port}/mcp", timeout_s=10.0)
    yield server
    server.close()
    process.terminate()
    process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> McpServer:
    return request.getfixturevalue(request.param)


def test_a_call(server: McpServer) -> None:
    """A server's tool is called like any other: typed arguments in, a checked answer out."""
    tools = server.tools(only=("price", "order"))
    assert set(tools) == {"price", "order"}
    assert "US dollars" in tools["price"].description
    at_desk = session(*tools.values())
    assert answered(at_desk, "price", article="bolt").value == {"usd": 0.25}
    wrong = answered(at_desk, "price", article=3)
    assert wrong.fault is not None
    assert wrong.fault.code == "bad_arguments"


def test_what_the_tool_raises_is_the_answer(server: McpServer) -> None:
    """A tool that fails on the server answers the agent with a fault."""
    answer = answered(session(*server.tools(only=("price",)).values()), "price", article="cheese")
    assert answer.fault is not None
    assert answer.fault.code == "tool_failed"
    assert "McpToolFailed" in answer.fault.message


def test_the_key_is_not_the_agents_affair(server: McpServer) -> None:
    """The agent does not see the idempotency key; the same decision, carried out twice, has its effect once."""
    order = server.tools(only=("order",))["order"]
    assert "idempotency_key" not in order.input_schema["properties"]
    first = answered(session(order), "order", article="nut")
    again = answered(session(order), "order", article="nut")
    assert first.ok
    assert first.value == again.value


def test_in_bounded_time(server: McpServer) -> None:
    """A call that takes too long is given up, and the server can be asked again."""
    from dataclasses import replace

    slow = server.tools(only=("slow",))["slow"]
    assert slow.outside is not None
    hasty = replace(slow, outside=replace(slow.outside, timeout_s=0.2))
    began = time.monotonic()
    answer = answered(session(hasty), "slow", seconds=2.0)
    assert time.monotonic() - began < 1.5
    assert answer.fault is not None
    assert "TimeoutError" in answer.fault.message
    assert answered(session(*server.tools(only=("price",)).values()), "price", article="nut").ok


def test_a_server_that_died_is_started_again(stdio: McpServer, wait_until: WaitUntil) -> None:
    """A killed server is back at the next call; a call that may be repeated does not even notice."""
    at_desk = session(*stdio.tools(only=("pid", "crash")).values())
    before = answered(at_desk, "pid").value["result"]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{before}/cmdline").exists(), "the server's end")
    after = answered(at_desk, "pid")
    assert after.ok, after.fault
    assert after.value["result"] != before
    crashed = answered(at_desk, "crash")
    assert crashed.fault is not None
    assert "was lost" in crashed.fault.message
    assert answered(at_desk, "pid").ok


def test_a_server_that_is_not_there() -> None:
    """A server that cannot be reached, or lacks a declared tool, is named when the team is made."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = McpServer(f"http://127.0.0.1:{free.getsockname()[1]}/mcp")
        with pytest.raises(ServiceUnavailable, match=r"127\.0\.0\.1"):
            nobody.tools()
        nobody.close()
    broken = McpServer(Command("/no/such/program"))
    with pytest.raises(ServiceUnavailable, match="/no/such/program"):
        broken.tools()
    broken.close()


def test_a_tool_that_is_not_there(stdio: McpServer) -> None:
    """A declared tool that the server lacks is refused, with those that it has."""
    with pytest.raises(ServiceUnavailable, match=r"lacks|has no tool refund.*price"):
        stdio.tools(only=("price", "refund"))
