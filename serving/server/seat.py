"""A version's Serve application: replicas that have shown that they decide as the version did at its export."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.openai_api.asked import Chat, Piece
from serving.playing import Answer
from serving.settings import Serving
from telemetry.watched import Watched

CPUS = 0.01
"""CPUs that Ray keeps free for a replica: how many processes fit a machine is the operator's affair, not Ray's."""
GRACE_S = 10.0
"""By how much a replica outlasts its longest turn when it is stopped (s)."""
STARTS = 2
"""How often a replica's start is tried before the version counts as failed: it is not chance that decides there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeatSpec:
    """Which version, for the process that is to play it. References only: no weights, no secrets."""

    team: str
    alias: str
    hash: str
    registry: str
    store: str
    cache: str
    """Where exports are fetched to."""
    greedy: bool
    seed: int
    threads: int
    watched: Watched


def app_name(team: str, alias: str) -> str:
    """The version's Serve application."""
    return f"{team}-{alias}"


class Seat:
    """One replica of a version.

    Raises:
        RefusedExport: the version is not what it was, or does not decide as it did.
    """

    def __init__(self, spec: SeatSpec) -> None:
        from assembly.live import Manner
        from assembly.watching import models_of
        from runtime.actor.spec import reference
        from serving.playing import Player
        from serving.registry import Objects, vetted
        from serving.rollout.tables import make_tables
        from serving.tables import open_serving_store
        from telemetry.metrics.watching import Watch

        directory = Objects(spec.registry).fetch(spec.hash, Path(spec.cache))
        version = vetted(directory, spec.team)
        self._store = make_tables(open_serving_store(reference(spec.store)))
        self._player = Player(version, spec.alias, self._store, Manner(greedy=spec.greedy, seed=spec.seed))
        self._watch = Watch(0, "seat", spec.watched.targets, spec.watched.otlp, [models_of(version)])
        self._speaker = _speaker(version, spec.greedy)
        self._threads = ThreadPoolExecutor(spec.threads, thread_name_prefix="turn")

    async def turn(self, session: str, key: str) -> Answer:
        """Play a session's next turn, or give again what the turn of this key came to."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._player.turn, session, key)

    async def say(self, chat: Chat) -> AsyncGenerator[Piece]:
        """Go on with a chat, piece by piece. Nothing more is written once nobody listens."""
        pieces, loop = self._speaker.said(chat), asyncio.get_running_loop()
        while (piece := await loop.run_in_executor(self._threads, next, pieces, None)) is not None:
            yield piece


def _speaker(version: Any, greedy: bool) -> Any:
    """The version's language models; transformers is not imported for a version without any."""
    from serving.openai_api.speaking import Speaker

    return Speaker(version, greedy=greedy)


def application(settings: Serving, team: str, alias: str, content: str) -> Any:
    """A version as a Serve application."""
    from ray import serve

    served = settings.teams[team]
    spec = SeatSpec(
        team=team,
        alias=alias,
        hash=content,
        registry=served.registry,
        store=settings.store_at,
        cache=str(settings.place / "fetched"),
        greedy=served.greedy,
        seed=served.seed,
        threads=served.threads,
        watched=settings.watched,
    )
    deployment: Any = serve.deployment(
        Seat,
        name="seat",
        num_replicas=served.replicas,
        ray_actor_options={"num_cpus": CPUS},
        max_ongoing_requests=2 * served.threads,
        max_queued_requests=settings.limits.queue,
        graceful_shutdown_timeout_s=settings.limits.turn_s + GRACE_S,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
        max_constructor_retry_count=STARTS,
    )
    return deployment.bind(spec)
