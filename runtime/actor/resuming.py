"""Taking up again, after a restart, what an agent waited for when its last process ended."""

import logging
from collections.abc import Callable

from runtime.actor.errors import SnapshotRefused
from runtime.actor.kept import Kept
from runtime.actor.process import AgentProcess
from runtime.bus.event import Event
from runtime.store import snapshots

log = logging.getLogger(__name__)


def resumed(process: AgentProcess, kept_of: Callable[[str], Kept]) -> list[Event]:
    """What the behaviour has to tell itself about the things it waits for, over all its sessions."""
    resume = getattr(process.behaviour, "resume", None)
    store, spec = process.store, process.spec
    if resume is None or store is None:
        return []
    events: list[Event] = []
    for session in store.read(lambda c: snapshots.sessions(c, spec.team, spec.role)):
        try:
            awaiting = kept_of(session).awaiting
        except SnapshotRefused as error:  # its next event is told so; the other sessions go on
            log.warning("%s", error)
            continue
        events += resume(session, awaiting) if awaiting else ()
    return events
