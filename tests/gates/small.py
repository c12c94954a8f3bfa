"""A team of two that measures and reports, with ways to break it."""

from collections.abc import Callable, Mapping
from typing import Any

from assembly.gates.table import TeamTables
from policies.playing import Choice, Playable, RandomPolicy, Turn
from rewards.mix import Mix, Weighted
from runtime.records import Json
from runtime.seams import uniform
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Pipeline, Role, RoundRobin, Scenario, Team, Turns, View


class Pipe:
    """A pressure that only the tools can tell."""

    def __init__(self, scenario: Scenario) -> None:
        self.bar = round(1 + uniform("pipe", scenario.seed), 3)
        self.reported = False

    def outcome(self) -> tuple[Mapping[str, Json], bool]:
        return {"reported": self.reported}, self.reported


def measure(pipe: Pipe) -> float:
    """The pressure, bar."""
    return pipe.bar


def report(pipe: Pipe) -> str:
    """Report it, which ends the case."""
    pipe.reported = True
    return "noted"


@term(kind="outcome", reads=("outcome",), at_end=True)
def reported(view: View) -> float:
    return 2.0 if view.success else 0.0


@term(kind="cost", scope="agent")
def effort(view: View) -> float:
    return -0.5


def case(index: int) -> Scenario:
    return Scenario(id=f"case-{index}", visible={"case": index}, truth={}, seed=index)


def team(world: Callable[[Scenario], Any] = Pipe, turns: Turns | None = None, max_turns: int = 64) -> Team:
    return Team(
        name="pipes",
        roles=(
            Role(name="reader", brief="Measure.", tools=("measure",)),
            Role(name="clerk", brief="Report.", tools=("report",)),
        ),
        tools={"measure": tool(measure), "report": tool(report, ends=True)},
        turns=turns or Pipeline(order=("reader", "clerk")),
        world=world,
        generate=lambda split, seed, index: case(index),
        terms={"reported": reported, "effort": effort},
        max_turns=max_turns,
    )


def tables(of: Team, seats: Mapping[str, Playable] | None = None, *terms: Any) -> TeamTables:
    mix = Mix([Weighted(t, 1.0) for t in terms or (reported, effort)])
    return TeamTables(of, case, seats or {r.name: RandomPolicy() for r in of.roles}, mix, 0)


class Failing:
    """Decides at random, and raises at its n-th decision."""

    def __init__(self, at: int) -> None:
        self.left, self._random = at, RandomPolicy()

    def decide(self, turns: list[Turn], greedy: bool) -> list[Choice]:
        self.left -= 1
        if self.left == 0:
            raise OSError("the model's file is gone")
        return list(self._random.decide(turns, greedy))


ROUNDS = RoundRobin(order=("reader", "clerk"), rounds=8)
