"""The calls a role chooses among, in a fixed order: it numbers a policy's heads and an environment's actions."""

from functools import cache

from envs.floor import Floor
from runtime.errors import TeamError
from runtime.records import ToolCall
from runtime.tools import finite_calls
from runtime.types import HAND_OVER, PASS_TURN, Budget, Pipeline, Role, Team


def candidates(team: Team, role: Role) -> tuple[ToolCall, ...]:
    """The role's calls: its tools' (or those it lists), then the ways to pass the case on.

    Raises:
        TeamError: a tool takes free arguments and the role lists no calls of its own.
    """
    return _candidates(team.name, role.name, _Team(team))


class _Team:
    """A team by identity, so that its candidates are worked out once."""

    def __init__(self, team: Team) -> None:
        self.team = team

    def __hash__(self) -> int:
        return id(self.team)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Team) and other.team is self.team


@cache
def _candidates(_team: str, role_name: str, boxed: _Team) -> tuple[ToolCall, ...]:
    team, role = boxed.team, boxed.team.role(role_name)
    own = role.calls if role.calls is not None else _from_schemas(team, role)
    return own + _passes(team, role)


def _from_schemas(team: Team, role: Role) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for name in role.tools:
        found = finite_calls(team.tools[name])
        if found is None:
            raise TeamError(
                f"role {role.name}: tool {name} takes arguments that cannot be listed; "
                "give the role `calls=(ToolCall(...), ...)`"
            )
        calls.extend(found)
    return tuple(calls)


def _passes(team: Team, role: Role) -> tuple[ToolCall, ...]:
    if not isinstance(team.turns, Pipeline):
        return (ToolCall(tool=PASS_TURN),) if may_run_dry(team, role) else ()
    calls: list[ToolCall] = []
    for name in Floor(team.turns).passes(role.name):
        if team.turns.handoff == "verdict" and name == HAND_OVER:
            calls.extend(ToolCall(tool=name, args={"suspicion": v}) for v in team.turns.verdicts)
        else:
            calls.append(ToolCall(tool=name))
    return tuple(calls)


def may_run_dry(team: Team, role: Role) -> bool:
    """Whether the role can come to a turn with no tool left to call."""
    return not team.repeats or role.budget != Budget()
