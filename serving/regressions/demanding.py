"""A promotion that regression cases are asked about first."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from assembly.cases import read_cases
from serving.errors import NotNow
from serving.registry import vetted
from serving.regressions.trying import demand, tried
from serving.steering import Pinned
from serving.versions import Versions


class Demanding:
    """Steers as ``Versions`` does, but promotes no version that does worse on a case (``serving.steering.Steering``).

    Args:
        versions: who steers.
        cases: the file of regression cases, read at each promotion.
        fetched: where exports are fetched to.
        greedy: whether the team is served greedily.
    """

    def __init__(self, versions: Versions, cases: Path, fetched: Path, greedy: bool) -> None:
        self._versions, self._cases, self._fetched, self._greedy = versions, cases, fetched, greedy
        self._told: dict[tuple[str, str], str | NotNow] = {}
        """What came of it, by version and cases: a version that was refused is asked for again and again."""

    def current(self, team: str) -> str:
        """The version that new sessions get by default."""
        return self._versions.current(team)

    def ratios(self, team: str) -> Mapping[str, float]:
        """The share of new sessions that each canary gets."""
        return self._versions.ratios(team)

    def canary(self, team: str, version: str, ratio: float, *, by: str, why: str) -> None:
        """Give a version this share of new sessions."""
        self._versions.canary(team, version, ratio, by=by, why=why)

    def promote(self, team: str, version: str, *, by: str, why: str) -> None:
        """Make a version the current one. Raises NotNow where it does worse on cases, which are named."""
        told = self._asked(team, version)
        self._versions.promote(team, version, by=by, why="; ".join(filter(None, (why, told))))

    def rollback(self, team: str, version: str, *, by: str, why: str, pinned: Pinned = "finish") -> None:
        """Give this version no new sessions any more."""
        self._versions.rollback(team, version, by=by, why=why, pinned=pinned)

    def _asked(self, team: str, version: str) -> str:
        known = self._versions.version(team, version)
        key = (known.hash, blake2b(self._cases.read_bytes(), digest_size=16).hexdigest())
        if key not in self._told:
            self._told[key] = self._tried(team, known.hash, known.alias)
        if isinstance(told := self._told[key], NotNow):
            raise told
        return told

    def _tried(self, team: str, content: str, alias: str) -> str | NotNow:
        loaded = vetted(self._versions.registries[team].fetch(content, self._fetched), team)
        cases = [case for case in read_cases(self._cases) if case.session.team == team]
        try:
            return demand(tried(loaded, cases, greedy=self._greedy), alias)
        except NotNow as refused:
            return refused
