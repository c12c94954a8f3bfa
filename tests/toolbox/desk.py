"""A team with tools that act outside, and a world to call them in."""

from collections.abc import Callable
from typing import Any

from envs.session import Session
from runtime.records import ToolAnswered, ToolCall
from runtime.tools import tool
from runtime.types import Role, RoundRobin, Scenario, Team, Tool


class Desk:
    """Nothing but a place to keep notes."""

    def __init__(self, _scenario: Scenario | None = None) -> None:
        self.notes: list[Any] = []

    def outcome(self) -> tuple[dict[str, Any], bool]:
        return {"notes": len(self.notes)}, True


def leave(desk: Desk) -> str:
    """Go home."""
    return "bye"


def team(*tools: Tool, max_age_s: float | None = None, repeats: bool = True) -> Team:
    """One role with these tools, and one to leave by."""
    names = (*(t.name for t in tools), "leave")
    calls = tuple(ToolCall(tool=n) for n in names)
    return Team(
        name="desk",
        roles=(Role(name="clerk", brief="Work.", tools=names, calls=calls, max_age_s=max_age_s),),
        tools={**{t.name: t for t in tools}, "leave": tool(leave, ends=True)},
        turns=RoundRobin(order=("clerk",), rounds=50),
        world=Desk,
        repeats=repeats,
    )


def session(*tools: Tool, clock: Callable[[], float] = lambda: 0.0, **options: Any) -> Session:
    """The team at work."""
    return Session(team(*tools, **options), Scenario(id="s", visible={}, truth={}), clock=clock)


def answered(session: Session, name: str, **args: Any) -> ToolAnswered:
    """The clerk's call, and what came back."""
    records = session.act("clerk", ToolCall(tool=name, args=args))
    return next(r for r in records if isinstance(r, ToolAnswered))


def rate(desk: Desk) -> float:
    """The exchange rate."""
    desk.notes.append("asked")
    return 1.0 + len(desk.notes)


def rate_desk() -> Session:
    """A clerk who can ask for the exchange rate."""
    return session(tool(rate))
