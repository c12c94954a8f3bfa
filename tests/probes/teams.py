"""Teams with a known answer: each is about one thing that a learner has to get right."""

from collections.abc import Callable
from random import Random
from typing import Literal

from runtime.records import Decided, Json
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import (
    AgentId,
    Pipeline,
    Role,
    RoundRobin,
    Scenario,
    Team,
    View,
)

Colour = Literal["red", "blue"]
COLOURS: tuple[Colour, ...] = ("red", "blue")
ROUNDS = ("first", "second", "third", "fourth")
"""What the clock shows."""
CHEST = 10.0
"""What the chest pays the one time that it may be opened."""


class Room:
    """What the tools act on: a light of some colour, buttons, and a clock that counts rounds."""

    def __init__(self, scenario: Scenario) -> None:
        self.colour: str = scenario.truth["colour"]
        self.watchers: list[str] = scenario.truth["watchers"]
        self.clock: bool = scenario.truth["clock"]
        self.round = 0

    def look(self, agent: AgentId) -> Json:
        return {"round": ROUNDS[self.round] if self.clock else "", "light": self._light(agent)}

    def _light(self, agent: AgentId) -> str:
        return self.colour if agent in self.watchers else "hidden"

    def end_round(self) -> bool:
        self.round = min(self.round + 1, len(ROUNDS) - 1)
        return False

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {}, True


def press(world: Room, button: Colour) -> str:
    """Press a button."""
    return "pressed"


def wait(world: Room) -> str:
    """Do nothing."""
    return "waited"


def open_chest(world: Room) -> str:
    """Open the chest."""
    return "opened"


def answer(world: Room, colour: Colour) -> str:
    """Name the colour, which ends the episode."""
    return "answered"


TOOLS = {t.name: t for t in (tool(press), tool(wait), tool(open_chest), tool(answer, ends=True))}


def _rounds(
    name: str,
    seats: dict[AgentId, tuple[str, ...]],
    rounds: int,
    *,
    watchers: tuple[str, ...] = (),
    clock: bool = True,
    repeats: bool = True,
    max_turns: int = 64,
) -> Team:
    """A team whose roles act in turn with those tools."""
    return Team(
        name=name,
        roles=tuple(Role(name=r, brief="Act.", tools=tools) for r, tools in seats.items()),
        tools=TOOLS,
        turns=RoundRobin(order=tuple(seats), rounds=rounds),
        world=Room,
        generate=_generator(watchers, clock),
        terms={t.name: t for t in (steady, last_pay, sunny, red_pressed, first_red, chest, right, paid_one, paid_all)},
        repeats=repeats,
        max_turns=max_turns,
    )


def _generator(watchers: tuple[str, ...], clock: bool) -> Callable[[str, int, int], Scenario]:
    def generate(split: str, seed: int, index: int) -> Scenario:
        colour = Random(digest(split, seed, index)).choice(COLOURS)
        truth = {"colour": colour, "watchers": list(watchers), "clock": clock}
        return Scenario(id=f"{split}-{seed}/{index}", visible={}, truth=truth)

    return generate


def waiting(rounds: int = 1, max_turns: int = 64, clock: bool = True) -> Team:
    """One role that can only wait: nothing to decide, so only the critic can learn."""
    return _rounds("waiting", {"worker": ("wait",)}, rounds, clock=clock, max_turns=max_turns)


def two_waiting(rounds: int) -> Team:
    """Two roles that can only wait, in turn."""
    return _rounds("two_waiting", {"one": ("wait",), "two": ("wait",)}, rounds)


def weather() -> Team:
    """One role that sees the light, and can only wait."""
    return _rounds("weather", {"worker": ("wait",)}, 1, watchers=("worker",))


def pressing(rounds: int = 1) -> Team:
    """One role that presses buttons."""
    return _rounds("pressing", {"worker": ("press",)}, rounds)


def neighbours() -> Team:
    """Two roles that press buttons, one after the other."""
    return _rounds("neighbours", {"bystander": ("press",), "earner": ("press",)}, 1)


def treasure(rounds: int = 3) -> Team:
    """One role; every call can be made once only."""
    return _rounds("treasure", {"worker": ("open_chest", "wait", "press")}, rounds, repeats=False)


def telegraph(words: tuple[str, ...] = COLOURS) -> Team:
    """The watcher sees the light and may send one word; the other one, who sees only the word, names the colour."""
    return Team(
        name="telegraph",
        roles=(
            Role(name="watcher", brief="Tell the colour.", tools=()),
            Role(name="namer", brief="Name the colour.", tools=("answer",)),
        ),
        tools=TOOLS,
        turns=Pipeline(order=("watcher", "namer"), handoff="verdict", verdicts=tuple(words)),
        world=Room,
        generate=_generator(("watcher",), clock=False),
        terms={right.name: right},
    )


def _pressed(view: View, agent: AgentId) -> list[str]:
    """The buttons that an agent has pressed so far."""
    return [
        str(r.call.args["button"])
        for r in view.history
        if isinstance(r, Decided) and r.agent == agent and r.call.tool == "press"
    ]


@term(kind="outcome")
def steady(view: View) -> float:
    """1 for every step, whatever is done."""
    return 1.0


@term(kind="outcome", at_end=True)
def last_pay(view: View) -> float:
    """8 when the episode ends, whatever was done."""
    return 8.0


@term(kind="outcome", reads=["truth"])
def sunny(view: View) -> float:
    """2 where the light is red, -1 where it is blue, whatever is done."""
    return 2.0 if view.truth["colour"] == "red" else -1.0


@term(kind="outcome")
def red_pressed(view: View) -> float:
    """1 for pressing the red button."""
    return float(_pressed(view, view.agent)[-1] == "red")


@term(kind="outcome", at_end=True)
def first_red(view: View) -> float:
    """1 at the end, if the first button of the episode was red."""
    return float(_pressed(view, view.agent)[0] == "red")


@term(kind="outcome")
def chest(view: View) -> float:
    """CHEST for opening the chest."""
    return CHEST * any(isinstance(r, Decided) and r.call.tool == "open_chest" for r in view.step)


@term(kind="outcome", reads=["truth"], at_end=True)
def right(view: View) -> float:
    """1 at the end if the named colour is the light's."""
    last = next(r for r in reversed(view.history) if isinstance(r, Decided))
    return float(last.call.args["colour"] == view.truth["colour"])


def _earned(view: View) -> float:
    """On the earner's turn: 1 for a red button of its own, and 2 if the bystander pressed red."""
    if view.agent != "earner":
        return 0.0
    return float(_pressed(view, "earner")[-1] == "red") + 2.0 * (_pressed(view, "bystander")[-1] == "red")


paid_one = term(kind="outcome", scope="agent", name="paid_one")(_earned)
paid_all = term(kind="outcome", scope="team", name="paid_all")(_earned)
