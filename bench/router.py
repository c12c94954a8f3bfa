"""Our router, pins included, beside bare Ray Serve that answers HTTP with the same policy in one process."""

import asyncio
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options

TEAM, ALIAS = "bench", "v1"
REQUESTS, ROUNDS = 150, 5
"""Requests of a lap, one after the other, and laps of each contestant; they take turns."""
TARGETS = {0: 1.7, 20: 1.3}
"""At most so many times bare Serve's median, by what the policy takes (ms). A second hop alone is 1.46 and 1.19."""
UP_S = 120.0
"""How long everything may take to be up (s)."""
TOKEN = "bench-token-0123456789"
TURN = {
    "turn": 0, "agent": "one", "decisions": [], "to_act": "one", "ended": False, "outcome": None, "success": None,
    "cost_usd": 0.0, "degraded": False,
}  # fmt: skip
"""What all contestants answer."""


class Policy:
    """A version's replica whose policy takes so long (s) and does nothing else."""

    def __init__(self, takes_s: float) -> None:
        self._takes_s = takes_s

    async def turn(self, session: str, key: str) -> Any:
        """Decide."""
        if self._takes_s:
            await asyncio.sleep(self._takes_s)
        return {"status": "ok", "turn": TURN}


def bare_app(takes_s: float) -> Any:
    """The policy behind FastAPI, as Serve's own documentation has it."""
    from fastapi import FastAPI
    from ray import serve

    policy = Policy(takes_s)

    def build() -> Any:
        app = FastAPI()

        @app.post("/turns/{session}")
        async def turn(session: str) -> dict[str, Any]:
            return {**(await policy.turn(session, ""))["turn"], "session": session, "version": ALIAS}

        return app

    ingress: Any = serve.ingress(build)()
    deployment: Any = serve.deployment(ingress, name="bare", ray_actor_options={"num_cpus": 0.01})
    return deployment.bind()


def hop_app(takes_s: float) -> Any:
    """The policy one hop behind FastAPI: what any router over Serve's handles costs."""
    from fastapi import FastAPI
    from ray import serve

    def build() -> Any:
        app, reached = FastAPI(), list[Any]()

        @app.post("/turns/{session}")
        async def turn(session: str) -> dict[str, Any]:
            if not reached:
                reached.append(serve.get_app_handle("behind"))
            return {**(await reached[0].turn.remote(session, ""))["turn"], "session": session, "version": ALIAS}

        return app

    behind: Any = serve.deployment(Policy, name="behind", ray_actor_options={"num_cpus": 0.01})
    serve.run(behind.bind(takes_s), name="behind", route_prefix=None)
    ingress: Any = serve.ingress(build)()
    deployment: Any = serve.deployment(ingress, name="hop", ray_actor_options={"num_cpus": 0.01})
    return deployment.bind()


def router(options: Options) -> Outcome:
    """Medians of both, for a policy that takes no time and for one of 20 ms."""
    count, rounds = (5, 1) if options.quick else (REQUESTS, ROUNDS)
    claims: list[Claim] = []
    figures: dict[str, Any] = {"requests": count, "rounds": rounds}
    for ms, target in TARGETS.items():
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder, _up(Path(folder), ms / 1e3) as url:
            laps = _laps(url, count, rounds)
        what = f"of bare Serve's median, policy of {ms} ms"
        claims.append(Claim(what=what, unit="×", measured=_ratio(laps, "ours"), target=target, at_least=False))
        claims.append(Claim(what=f"a bare second hop, policy of {ms} ms", unit="×", measured=_ratio(laps, "hop")))
        claims.append(Claim(what=f"median of ours, policy of {ms} ms", unit="ms", measured=median(laps["ours"])))
        figures[f"medians_ms_{ms}"] = laps
    return Outcome(claims=tuple(claims), figures=figures)


def _ratio(laps: dict[str, list[float]], name: str) -> float:
    """How many times bare Serve's median, in the middle of the laps."""
    return median([one / bare for one, bare in zip(laps[name], laps["bare"], strict=True)])


@contextmanager
def _up(folder: Path, takes_s: float) -> Generator[str]:
    """All contestants behind the same proxy; its address."""
    from ray import serve

    from serving.server.seat import app_name
    from serving.server.start import serving
    from serving.settings import Serving

    os.environ["BENCH_TOKEN"] = TOKEN
    settings = Serving.model_validate(
        {
            "teams": {TEAM: {"registry": str(folder / "registry")}},
            "directory": str(folder),
            "http": {"port": 0, "tokens": {"admin": "env:BENCH_TOKEN"}},
        }
    )
    with serving(settings) as server:
        policy: Any = serve.deployment(Policy, name="seat", ray_actor_options={"num_cpus": 0.01})
        serve.run(policy.bind(takes_s), name=app_name(TEAM, ALIAS), route_prefix=None)
        serve.run(bare_app(takes_s), name="bare", route_prefix="/bare")
        serve.run(hop_app(takes_s), name="hop", route_prefix="/hop")
        server.versions.store.write(_seat)
        _wait(server.url)
        yield server.url


def _seat(connection: Any) -> None:
    """Have the stand-in on record as the team's current version."""
    from serving.versions import ledger

    ledger.register(connection, TEAM, "0" * 32, {}, time.time())
    ledger.move(connection, ledger.version(connection, TEAM, ALIAS), "ready")
    ledger.seat(connection, TEAM, ALIAS)


def _wait(url: str) -> None:
    import httpx2

    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        try:
            if httpx2.get(f"{url}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            continue
    raise TimeoutError(f"the router is not ready after {UP_S:g} s")


def _laps(url: str, count: int, rounds: int) -> dict[str, list[float]]:
    """The median of each lap, ms; the first lap of each warms up."""
    import httpx2

    laps: dict[str, list[float]] = {"bare": [], "hop": [], "ours": []}
    with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30) as client:
        session = client.post(f"/v1/teams/{TEAM}/sessions").json()["session"]
        paths = {
            "bare": f"/bare/turns/{session}",
            "hop": f"/hop/turns/{session}",
            "ours": f"/v1/teams/{TEAM}/sessions/{session}/turns",
        }
        for lap in range(rounds + 1):
            for name, path in paths.items():
                found = _lap(client, path, count)
                if lap:
                    laps[name].append(found)
    return laps


def _lap(client: Any, path: str, count: int) -> float:
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        client.post(path).raise_for_status()
        took.append(1e3 * (time.perf_counter() - began))
    return median(took)
