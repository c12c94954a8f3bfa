"""From where cases may go to whose turn it is: a line of seats, perhaps with hand-backs. Anything else is refused."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from envs.adapters.beside import Seat
from runtime.errors import TeamError
from runtime.types import AgentId, Pipeline

CHOOSE = "name the seats of one line, order=[…], or make a team of each branch"
"""What to do about a branch."""


def taken_over(seats: Mapping[AgentId, Seat], first: AgentId, order: Sequence[AgentId]) -> tuple[list[Seat], Pipeline]:
    """The seats of a team in their order, and its turns.

    Args:
        seats: all that were found, by name.
        first: the one that a case begins with.
        order: those that the user wants, in this order; empty: all, as the case may go.

    Raises:
        TeamError: the seats form no line; the seat, and what to do.
    """
    names = list(order) or _line(seats, first)
    if unknown := [n for n in names if n not in seats]:
        raise TeamError(f"order: there is no {', '.join(unknown)}; there are {', '.join(seats)}")
    for one, other in pairwise(names):
        if other not in seats[one].following:
            goes = ", ".join(sorted(seats[one].following)) or "nowhere"
            raise TeamError(f"order: a case does not go from {one} to {other}; it goes to {goes}")
    if not order and (idle := sorted(set(seats) - set(names))):
        raise TeamError(f"{', '.join(idle)}: no case that begins with {first} gets there; {CHOOSE}")
    chosen = [seats[n] for n in names]
    return chosen, Pipeline(order=tuple(names), hand_back=_hands_back(chosen))


def _line(seats: Mapping[AgentId, Seat], first: AgentId) -> list[AgentId]:
    names = [first]
    while True:
        seat = seats[names[-1]]
        further = sorted(seat.following - set(names))
        if len(further) > 1:
            raise TeamError(
                f"{seat.name} passes on to {' or '.join(further)}: a team is a line, in which each seat has "
                f"one next; {CHOOSE}"
            )
        if not further:
            return names
        names += further


def _hands_back(chosen: Sequence[Seat]) -> bool:
    """Whether each seat may return a case to the one before it. Raises TeamError where only some may, or further."""
    names = [s.name for s in chosen]
    for place, seat in enumerate(chosen):
        for to in seat.following & set(names[: max(0, place - 1)]):
            raise TeamError(
                f"{seat.name} goes back to {to}, over {names[place - 1]}: a case goes back by one seat only"
            )
    back = {other.name: one.name in other.following for one, other in pairwise(chosen)}
    if any(back.values()) and not all(back.values()):
        lacks = next(n for n, can in back.items() if not can)
        has = next(n for n, can in back.items() if can)
        raise TeamError(f"{has} may return a case and {lacks} may not: in a team either all may or none; {CHOOSE}")
    return any(back.values())
