"""A team's agents, each in its place: processes of Ray's, and one in the foreground where somebody wants to look."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import getpid
from typing import Any

from runtime.actor.hosted import AgentActor
from runtime.actor.spec import AgentSpec
from runtime.actor.starting import LOCAL, start_ray


@contextmanager
def hosting(specs: Sequence[AgentSpec], *, foreground: str | None = None) -> Generator[Mapping[str, int]]:
    """Have the agents live until the block ends; their process ids by role.

    Args:
        specs: agents that live on the bus.
        foreground: the role that lives in this process.
    """

    with ExitStack() as closing:
        away = [s for s in specs if s.role != foreground]
        if away:
            closing.enter_context(local_ray())
        pids: dict[str, int] = {}
        for spec in away:
            actor = AgentActor.start(spec)
            closing.callback(actor.stop)
            pids[spec.role] = actor.health().pid
        for spec in specs:
            if spec.role == foreground and spec.bus is not None:
                from runtime.actor.attendant import Attendant

                closing.callback(Attendant(spec, spec.bus).stop)
                pids[spec.role] = getpid()
        yield pids


@contextmanager
def local_ray() -> Generator[None]:
    """A Ray of this program's own, unless there is one already."""
    import ray as untyped

    ray: Any = untyped
    if ray.is_initialized():
        yield
        return
    start_ray(**LOCAL)
    try:
        yield
    finally:
        ray.shutdown()
