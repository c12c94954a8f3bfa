"""What a router sees of the teams' versions: it looks again and again, and serves on by its last look."""

import logging
from time import monotonic

from redis.exceptions import RedisError

from runtime.errors import ServiceUnavailable
from serving.choosing import View
from serving.errors import UnknownVersion
from serving.versions import Versions

_log = logging.getLogger(__name__)
STALE_S = 10.0
"""A router that has not been able to look for so long (s) says that it is not ready."""


class Views:
    """The versions of every team, as they were last seen.

    Args:
        versions: the teams' versions.
    """

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._views: dict[str, View] = {}
        self._looked = 0.0

    def refresh(self) -> None:
        """Look at the versions, and at what operators have written into Redis."""
        for team in self._versions.registries:
            known = self._versions.known(team)
            try:
                if self._versions.adopt(team, known):
                    known = self._versions.known(team)
            except (RedisError, OSError, ServiceUnavailable) as error:
                _log.warning("Redis does not answer, the last ratios hold: %s", error)
            self._views[team] = View(team, tuple(known), self._versions.seated(team))
        self._looked = monotonic()

    def of(self, team: str) -> View:
        """A team's versions. Raises UnknownVersion if there is no such team."""
        if team not in self._views:
            raise UnknownVersion(f"there is no team {team!r} here; there are {', '.join(sorted(self._views))}")
        return self._views[team]

    def unready(self) -> str:
        """Why this router should get no requests; empty: it should."""
        if monotonic() - self._looked > STALE_S:
            return "the store has not been seen lately"
        waiting = [t for t, v in self._views.items() if v.current not in v.ready]
        return f"no current version is ready: {', '.join(waiting)}" if waiting else ""
