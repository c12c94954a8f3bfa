"""How a server is, for whoever looks: its versions, its sessions, and what all of its processes commit."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache

from assembly.watching import SHORT, watched_store
from serving.settings import Serving
from serving.versions import Versions
from serving.versions.ledger import Known
from telemetry.metrics.meters import Meters
from telemetry.metrics.watching import Look, Watch


@contextmanager
def watched(settings: Serving, versions: Versions) -> Generator[Watch]:
    """Count what the server's teams do, and show it, from here to the end of the block."""

    @lru_cache(maxsize=1024)
    def alias(team: str, content: str) -> str:
        known = versions.known(team) if team in versions.registries else []
        return next((v.alias for v in known if v.hash == content), content[:SHORT])

    def log_size(meters: Meters) -> None:
        meters.record("store.wal", versions.store.wal_bytes())

    looks = [versions_look(versions), log_size]
    with watched_store(
        versions.store, settings.watched, job="serving", phase="serving", looks=looks, version=alias
    ) as watch:
        yield watch


def versions_look(versions: Versions) -> Look:
    """Each version's state, its share of new sessions, and the sessions that are open on it."""
    states: dict[tuple[str, str], str] = {}

    def look(meters: Meters) -> None:
        for team in versions.registries:
            known, counts = versions.known(team), versions.open_sessions(team)
            shares = _shares(known, versions.seated(team))
            for each in known:
                labels = {"team": team, "version": each.alias}
                before = states.get((team, each.alias))
                if before not in (None, each.state):
                    meters.record("version.state", 0, state=before, **labels)
                states[team, each.alias] = each.state
                meters.record("version.state", 1, state=each.state, **labels)
                meters.record("version.ratio", shares[each.alias], **labels)
                meters.record("session.open", counts.get(each.alias, 0), **labels)

    return look


def _shares(known: list[Known], current: str) -> dict[str, float]:
    """The share of new sessions that each version gets: the current one has what canaries leave."""
    left = max(0.0, 1.0 - sum(v.ratio for v in known))
    return {v.alias: left if v.alias == current else v.ratio for v in known}
