"""What the bus refuses, and why. Each survives pickling: Ray carries them between processes."""

from runtime.errors import RepertoryError
from runtime.records import Json


class BusError(RepertoryError):
    """Whatever the event bus raises on purpose."""


class Overloaded(BusError):
    """The team's streams are deeper than the limit, and stayed so for as long as a publisher may wait."""

    def __init__(self, team: str, depth: int, limit: int) -> None:
        super().__init__(team, depth, limit)
        self.team, self.depth, self.limit = team, depth, limit

    def __str__(self) -> str:
        return f"team {self.team} is {self.depth} events behind (limit {self.limit}): publish later, or add consumers"


class ContractBroken(BusError):
    """A payload is not what the two roles agreed on: where, which value, and why."""

    def __init__(self, sender: str, to: str, path: str, problem: str) -> None:
        super().__init__(sender, to, path, problem)
        self.sender, self.to, self.path, self.problem = sender, to, path, problem

    def __str__(self) -> str:
        return f"{self.sender} -> {self.to}: {self.path}: {self.problem}"


class NoSuchRole(BusError):
    """An event is for a role that the team does not have."""

    def __init__(self, team: str, role: str, roles: tuple[str, ...]) -> None:
        super().__init__(team, role, roles)
        self.team, self.role, self.roles = team, role, roles

    def __str__(self) -> str:
        return f"team {self.team} has no role {self.role!r}; it has {', '.join(self.roles)}"


class Misfit(BusError):
    """The roles of a team do not fit together: every place, naming both roles."""

    def __init__(self, team: str, problems: tuple[str, ...]) -> None:
        super().__init__(team, problems)
        self.team, self.problems = team, problems

    def __str__(self) -> str:
        return f"the roles of team {self.team} do not fit together:\n" + "\n".join(f"  {p}" for p in self.problems)


class Undecodable(BusError):
    """A stream entry that is no event, whatever is assumed about it."""

    def __init__(self, reason: str, fields: Json) -> None:
        super().__init__(reason, fields)
        self.reason, self.fields = reason, fields

    def __str__(self) -> str:
        return self.reason
