"""The names of streams and keys, in one place."""

from dataclasses import dataclass

from runtime.errors import TeamError
from runtime.seams import digest

LOG = "agent_events"
"""The complete log of all teams: a view, cut by age."""
TEAMS = "agent_events:teams"
"""A hash from team to its roles, so that events made by hand find their team."""
RESERVED = frozenset({"counts", "dead", "keeper", "marker", "teams"})
"""What stands in the place of a role in other keys."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that one team uses. With shards, all keys that a script touches carry the same cluster hash tag."""

    team: str
    roles: tuple[str, ...]
    shards: int = 1

    def __post_init__(self) -> None:
        for name in (self.team, *self.roles):
            if not name or set(name) & set(":{} \n") or name in RESERVED:
                reserved = ", ".join(sorted(RESERVED))
                raise TeamError(
                    f"{name!r} cannot name a team or role: no colon, brace or space, and none of {reserved}"
                )
        if self.shards < 1:
            raise TeamError(f"shards is {self.shards}: a role has at least one stream")

    def stream(self, role: str, session: str) -> str:
        """The stream on which a session's events for a role go: always the same."""
        return self.shard(role, digest(session) % self.shards if self.shards > 1 else 0)

    def shard(self, role: str, number: int) -> str:
        """A role's stream of that number, from 0."""
        return f"{LOG}:{{{self.team}:{role}:{number}}}" if self.shards > 1 else f"{LOG}:{self.team}:{role}"

    def streams(self, role: str) -> list[str]:
        """All streams of a role."""
        return [self.shard(role, k) for k in range(self.shards)]

    def every(self) -> list[str]:
        """All streams of the team."""
        return [s for role in self.roles for s in self.streams(role)]

    def role_of(self, stream: str) -> str:
        """The role whose stream it is; empty: none of this team's."""
        return next((role for role in self.roles if stream in self.streams(role)), "")

    @property
    def dead(self) -> str:
        """The stream of the team's dead letters."""
        return f"{LOG}:{self.team}:dead"

    def dead_of(self, stream: str) -> str:
        """The stream of dead letters that a stream's own go to: of the same slot where there are shards."""
        return f"{stream}:dead" if self.shards > 1 else self.dead

    def all_dead(self) -> list[str]:
        """All streams of dead letters."""
        sharded = [self.dead_of(s) for s in self.every()] if self.shards > 1 else []
        return [self.dead, *sharded]

    @property
    def counts(self) -> str:
        """A hash of what happened how often."""
        return f"{LOG}:{self.team}:counts"

    @property
    def keeper(self) -> str:
        """Held by the process that does the team's upkeep."""
        return f"{LOG}:{self.team}:keeper"

    @property
    def marker(self) -> str:
        """A random value that is gone when Redis was emptied."""
        return f"{LOG}:{self.team}:marker"


def index(dead: str) -> str:
    """The hash of what is in a stream of dead letters."""
    return f"{dead}:ids"


def sweeper(stream: str, group: str) -> str:
    """Held by the reader that takes over what dead readers of a group left."""
    return f"{stream}:sweeper:{group}"


def owner(team: str, role: str, shard: int = 0) -> str:
    """What is owned by the one who writes for a role, or for one shard of it."""
    return f"{team}/{role}/{shard}"
