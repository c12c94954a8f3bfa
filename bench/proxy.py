"""A call through the recording proxy beside the same call made directly, to an upstream that answers at once."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options

CALLS, ROUNDS = 200, 5
"""Calls of a lap, one after the other, and laps of each way; they take turns."""
TARGET_MS = 10.0
"""What recording may add to the median of a call (ms): a hosted model takes a hundred times as long."""
UP_S = 60.0
"""How long the proxy may take to be up (s)."""
WORDS = 2_000
"""Of the question's context: some 10 kB, as agents' prompts have."""
QUESTION: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "word " * WORDS}, {"role": "user", "content": "Where is order 1042?"}],
    "tools": [{"type": "function", "function": {"name": "track", "parameters": {"type": "object"}}}],
}
CALL = {"id": "call-1", "type": "function", "function": {"name": "track", "arguments": '{"order": 1042}'}}
MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}]}
"""What the upstream answers."""


def proxy(options: Options) -> Outcome:
    """Medians of both ways, each call a new conversation that is recorded."""
    count, rounds = (5, 1) if options.quick else (CALLS, ROUNDS)
    laps: dict[str, list[list[float]]] = {"direct": [], "through": []}
    with TemporaryDirectory() as folder, _upstream() as direct, _proxy(Path(folder), direct) as through:
        for _ in range(rounds):
            for name, url in (("direct", direct), ("through", through)):
                laps[name].append(_lap(url, count))
    medians = {name: [median(lap) for lap in found] for name, found in laps.items()}
    added = median([b - a for a, b in zip(medians["direct"], medians["through"], strict=True)])
    slowest = quantiles([ms for lap in laps["through"] for ms in lap], n=100)[98]
    claims = (
        Claim(
            what="added to a call's median by the proxy", unit="ms", measured=added, target=TARGET_MS, at_least=False
        ),
        Claim(what="a direct call's median", unit="ms", measured=median(medians["direct"])),
        Claim(what="99% of calls through it are faster than", unit="ms", measured=slowest),
    )
    return Outcome(claims=claims, figures={"calls": count, "rounds": rounds, "medians_ms": medians})


def _lap(url: str, count: int) -> list[float]:
    """Times of calls (ms)."""
    import httpx2

    found: list[float] = []
    with httpx2.Client(timeout=30) as client:
        for _ in range(count):
            began = time.perf_counter()
            client.post(f"{url}/chat/completions", json=QUESTION).raise_for_status()
            found.append(1000 * (time.perf_counter() - began))
    return found


@contextmanager
def _upstream() -> Generator[str]:
    """A server that answers at once, in a thread of its own; its address."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    body = json.dumps(ANSWER).encode()

    async def answer(request: Request) -> Response:
        await request.body()
        return Response(body, media_type="application/json")

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="critical")
    listening, server = config.bind_socket(), uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def _proxy(folder: Path, upstream: str) -> Generator[str]:
    """The proxy as its own process; its address."""
    told, store = folder / "told", f"sqlite:///{folder / 'store.db'}"
    words = [sys.executable, "-m", "runtime.proxy", "--upstream", upstream, "--port", "0", "--store", store]
    with told.open("w") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out)  # noqa: S603 - ours
    try:
        yield _address(told)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _address(told: Path) -> str:
    import httpx2

    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        found = re.search(r"recording at (\S+)/v1", told.read_text())
        try:
            if found and httpx2.get(f"{found[1]}/proxy/health").status_code == 200:
                return f"{found[1]}/v1"
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the proxy did not start: {told.read_text()}")
