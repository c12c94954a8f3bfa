"""What the roles of a team have agreed to pass on to each other, for the bus and for the check at start."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from runtime.bus.contracts import Agreement, Agreements, check_fit
from runtime.bus.errors import Misfit
from runtime.errors import TeamError
from runtime.types import AgentId, Pipeline, Team

HANDED = "handed"
"""The key of an event's payload under which lies what was passed on."""


def agreements(team: Team) -> Agreements:
    """What each pair of neighbours in a pipeline says to each other."""
    sends, takes = list[Agreement](), list[Agreement]()
    for sender, to in _pairs(team):
        giver, taker = team.role(sender), team.role(to)
        if giver.gives is not None:
            sends.append(Agreement(sender=sender, to=to, schema=_inside(giver.gives), version=giver.contract))
        if taker.takes is not None:
            takes.append(Agreement(sender=sender, to=to, schema=_inside(taker.takes), version=taker.understands))
    return Agreements(sends=sends, takes=takes)


def fitting(team: Team) -> Team:
    """The team, if what its roles give is what the next ones take.

    Raises:
        TeamError: they do not fit; every place, naming both roles.
    """
    try:
        check_fit(team.name, agreements(team))
    except Misfit as error:
        raise TeamError(str(error)) from None
    return team


def _pairs(team: Team) -> Iterator[tuple[AgentId, AgentId]]:
    if not isinstance(team.turns, Pipeline):
        return
    for one, other in pairwise(team.turns.order):
        yield one, other
        if team.turns.hand_back:
            yield other, one


def _inside(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {HANDED: dict(schema)}, "required": [HANDED]}
