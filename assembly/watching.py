"""A live team seen from outside: a port for each process, and whoever reads along in the store."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from assembly.versions import Version
from runtime.store import Store, history
from telemetry.metrics.live import LiveFeed, Phase
from telemetry.metrics.watching import Look, Watch, bus_look, memory, models_look
from telemetry.recorder import Counting, Thread
from telemetry.traces.exporting import Exporting
from telemetry.traces.sinks import CollectorSink, FileSink, Sink
from telemetry.watched import Watched

SHORT = 12
"""Characters of a version's content hash in a label: enough to tell versions apart."""


def watch_agent(watched: Watched, role: str, version: Version) -> Watch:
    """Show how the agent in this process is, for as long as the process lives."""
    policy = version.seats[role]
    looks = (memory("agent.memory", agent_id=role), models_look(lambda: asked_models(policy)))
    return Watch(0, f"agent_{role}", watched.targets, watched.otlp, looks)


def models_of(version: Version) -> Look:
    """Whether the models that a version's policies ask are left alone."""
    return models_look(lambda: [told for policy in version.seats.values() for told in asked_models(policy)])


def asked_models(policy: Any) -> Sequence[Mapping[str, int | str]]:
    """How the models are that a policy asks; none where it has not asked yet, or asks none."""
    asking: Any = sys.modules.get("policies.prompted")  # not loaded: nobody here asks a model, and torch may stay away
    if asking is not None and isinstance(policy, asking.PromptedPolicy) and "model" in vars(policy):
        return policy.model.stats()
    return ()


@contextmanager
def watched_store(
    store: Store,
    watched: Watched,
    *,
    job: str,
    phase: Phase,
    looks: Sequence[Look] = (),
    version: Callable[[str, str], str] = lambda _, name: name[:SHORT],
) -> Generator[Watch]:
    """Count what the store's teams do, and show it, from here to the end of the block.

    Args:
        store: whose history is followed.
        watched: where it is shown.
        job: what this process is.
        phase: the ``phase`` label of step latencies.
        looks: what else is looked at.
        version: a version's short name, from the team's and that on record.
    """
    with ExitStack() as closing:
        watch = closing.enter_context(Watch(watched.port, job, watched.targets, watched.otlp, looks))

        def opening(team: str, session: str) -> Any:
            return store.read(lambda c: history.opening(c, team, session))

        feed = LiveFeed(watch.meters, phase, opening, version)
        closing.enter_context(Thread("counting", Counting(store, watch.meters, feed)))
        for sink in trace_sinks(watched):
            closing.callback(sink.close)
            closing.enter_context(Thread(f"traces to {sink.name}", Exporting(store, sink)))
        yield watch


def trace_sinks(watched: Watched) -> list[Sink]:
    """Where traces go."""
    sinks: list[Sink] = [FileSink(watched.traces)] if watched.traces else []
    return [*sinks, CollectorSink(watched.otlp)] if watched.otlp else sinks


@contextmanager
def watched_stage(
    store: Store, watched: Watched, stats: Callable[[], Mapping[str, Any]] | None = None
) -> Generator[Watch]:
    """As ``watched_store``, for a live team. ``stats``: of its bus, where it has one."""
    looks = [bus_look(stats)] if stats else []
    with watched_store(store, watched, job="live", phase="live", looks=looks) as watch:
        yield watch
