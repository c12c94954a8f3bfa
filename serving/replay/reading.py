"""Where a command finds recorded sessions and the versions to play them: a store, a registry, an export's directory."""

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from runtime.actor.spec import reference
from runtime.recorded import RecordedSession, read_sessions, recorded_session, recorded_sessions
from runtime.store import Store, history
from serving.errors import NoSuchSession, UnknownVersion
from serving.loading import USUAL, load
from serving.registry import Objects, vetted
from serving.versions import ledger
from telemetry.stored import stored

if TYPE_CHECKING:
    from assembly.versions import Version
    from serving.settings import Serving

PARQUET = b"PAR1"
"""How a Parquet file begins."""


@dataclass(frozen=True, slots=True)
class House:
    """A store of sessions, and the serving file beside it."""

    store: Store
    settings: "Serving | None"
    """None: there is no serving file, so versions are directories."""
    wanted: str
    """The team that was asked for; empty: whichever it is."""

    @property
    def team(self) -> str:
        """The team that is meant. Raises UnknownVersion where that is not known."""
        if self.wanted:
            return self.wanted
        teams = list(self.settings.teams) if self.settings else []
        if len(teams) != 1:
            raise UnknownVersion(f"whose sessions? say --team ({', '.join(teams) or 'a name'})")
        return teams[0]

    def greedy(self, team: str) -> bool:
        """Whether the team is served greedily, as the serving file says; yes where it says nothing."""
        return self.settings is None or team not in self.settings.teams or self.settings.teams[team].greedy

    def team_of(self, session: str) -> str:
        """The team that a session is one of. Raises NoSuchSession."""
        found = [self.wanted] if self.wanted else self.store.read(lambda c: history.teams_of(c, session))
        if not found:
            raise NoSuchSession(f"nothing is on record of a session {session!r}")
        return found[0]

    def session(self, team: str, session: str) -> RecordedSession:
        """A session that is over. Raises NoSuchSession."""
        found = recorded_session(self.store, team, session)
        if found is None:
            raise NoSuchSession(f"{team} has no session {session!r} that is over and whose case is on record")
        return found

    def ended(self, team: str, since: float | None, last: int | None) -> Iterator[RecordedSession]:
        """Sessions that ended from a time on (Unix time, s), at most the last so many."""
        found = recorded_sessions(self.store, team, float("-inf") if since is None else since)
        yield from found if last is None else deque(found, maxlen=last)

    def listed(self, team: str, file: Path, skipped: list[str]) -> Iterator[RecordedSession]:
        """The sessions that a file names, or holds; those that are not there are noted."""
        try:
            data = file.read_bytes()
        except OSError as error:
            raise NoSuchSession(f"{file} cannot be read: {error.strerror}") from None
        if data.startswith(PARQUET):
            yield from (s for s in read_sessions(file) if s.team == team)
            return
        for name in filter(None, (line.strip() for line in data.decode("utf-8", "replace").splitlines())):
            try:
                yield self.session(team, name)
            except NoSuchSession as error:
                skipped.append(str(error))

    def version(self, team: str, name: str) -> tuple[str, "Version"]:
        """What a version is called, and the version, which has shown that it decides as at its export.

        Raises:
            UnknownVersion: there is none of that name.
            RefusedExport: it is damaged, or another team's.
        """
        if Path(name).is_dir():
            version = vetted(Path(name), team)
            return version.name[:12], version
        if self.settings is None or team not in self.settings.teams:
            raise UnknownVersion(
                f"{name!r} is no directory of an export, and no serving file says where {team} has others"
            )
        try:
            known = self.store.read(lambda c: ledger.version(c, team, name))
        except DBAPIError:
            raise UnknownVersion(
                f"no server has kept versions in this store: {name!r} is no directory either"
            ) from None
        registry = Objects(self.settings.teams[team].registry)
        return known.alias, vetted(registry.fetch(known.hash, self.settings.place / "fetched"), team)


@contextmanager
def house(file: Path | None, store: str, team: str) -> Generator[House]:
    """The store and the serving file that a command line names; the usual file where it is there.

    Raises:
        assembly.problems.Refused: the file is wrong, or neither a file nor a store is named.
        ServiceUnavailable: the store is not there.
    """
    settings = load(file or USUAL) if file is not None or not store or USUAL.is_file() else None
    url = store or reference(settings.store_at if settings else "")
    with stored(url) as opened:
        yield House(opened, settings, team)
