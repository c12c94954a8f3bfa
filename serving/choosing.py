"""Which version a new session gets: the one it asks for, or by its id a canary, or the current one."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.seams import uniform
from serving.errors import Busy, NotNow, UnknownVersion
from serving.versions.ledger import SERVED, Known


@dataclass(frozen=True, slots=True)
class View:
    """A team's versions, as a router last saw them."""

    team: str
    known: tuple[Known, ...]
    current: str

    @property
    def ready(self) -> frozenset[str]:
        """Who may get new sessions."""
        return frozenset(v.alias for v in self.known if v.state == "ready")

    def alias(self, name: str) -> str:
        """The alias of a version named by alias or hash. Raises UnknownVersion."""
        found = [v.alias for v in self.known if name in (v.alias, v.hash)]
        if not found:
            raise UnknownVersion(f"{self.team} has no version {name!r}; there are {_listed(self.known)}")
        return found[0]

    def choose(self, session: str, wish: str = "") -> str:
        """The version that a new session gets.

        The same id leads to the same version for the same ratios, in every router.

        Raises:
            NotNow: the wish is for a version that gets no new sessions.
            Busy: no version is ready yet.
        """
        if wish:
            alias = self.alias(wish)
            if alias not in self.ready:
                raise NotNow("not_ready", f"{alias} gets no new sessions; others do: {', '.join(sorted(self.ready))}")
            return alias
        place, reached = uniform("canary", self.team, session), 0.0
        for version in self.known:
            reached += version.ratio
            if version.ratio and place < reached and version.state == "ready":
                return version.alias
        if self.current not in self.ready:
            raise Busy("no_version", f"no version of {self.team} is ready")
        return self.current

    def served(self, alias: str) -> bool:
        """Whether the version has processes, or is to have some."""
        return any(v.alias == alias and v.state in SERVED for v in self.known)


def _listed(known: Sequence[Known]) -> str:
    return ", ".join(v.alias for v in known) or "none"
