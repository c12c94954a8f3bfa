"""The team my_team: a watcher who can look what is wrong with a machine, and a mender who changes one of its parts.

Everything that a team is stands here: what happens in it (world, tools), who acts (roles, turns), on what (scenarios)
and what for (reward terms). Change it piece by piece; ``python -m envs.check my_team`` says what does not fit together.
"""

from random import Random
from typing import Literal

from runtime.records import Json, ToolAnswered
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Baseline, Observation, Pipeline, Role, Scenario, Team, View

SIGNS = {"fan": "it is hot", "heater": "it is cold", "belt": "it stands still"}
"""What can be seen of a machine, by the part that is broken."""
LOOK_USD = 0.1
"""What a look is billed, in US dollars."""


class Machine:
    """The world: what the tools act on, made afresh for every episode."""

    def __init__(self, scenario: Scenario) -> None:
        self.broken: str = scenario.truth["broken"]
        self.changed: str | None = None

    def outcome(self) -> tuple[dict[str, Json], bool]:
        """How things stand at the end, and whether that is a success."""
        return {"changed": self.changed}, self.changed == self.broken


# -- tools: typed functions of the world; their docstrings and types are what agents are told


def look(world: Machine) -> str:
    """Look at the machine."""
    return SIGNS[world.broken]


def change(world: Machine, part: Literal["fan", "heater", "belt"]) -> str:
    """Change a part of the machine, which ends the case."""
    world.changed = part
    return "changed"


# -- scenarios: agents may see what is visible; the truth is for the world and the reward terms


def machine(split: str, seed: int, index: int) -> Scenario:
    """A case, drawn from nothing but the arguments: the same ones make the same case."""
    chance = Random(digest(split, seed, index))
    return Scenario(
        id=f"{split}-{seed}/{index}",
        visible={"machine": f"M{chance.randrange(10_000):04}", "hall": chance.choice(["north", "south"])},
        truth={"broken": chance.choice(list(SIGNS))},
        seed=chance.randrange(2**31),
    )


# -- reward terms: what the team is paid for


@term(kind="outcome", reads=["outcome"], at_end=True)
def mended(view: View) -> float:
    """1 for the right part, minus 1 for a wrong one."""
    return 1.0 if view.success else -1.0


@term(kind="cost")
def looked(view: View) -> float:
    """Minus what the step's looks were billed, in US dollars."""
    return -sum(r.cost_usd for r in view.step if isinstance(r, ToolAnswered))


# -- rules to compare with: what is trained should beat the simple one and come near the good one


def by_the_signs(seen: Observation, chance: Random) -> int:
    """Look once, hand over, and change what the signs say."""
    legal = [i for i, allowed in enumerate(seen.mask) if allowed]
    part = next((p for p, sign in SIGNS.items() if sign in seen.text), None)
    fitting = [i for i in legal if part and seen.candidates[i].args.get("part") == part]
    return (fitting or legal)[0]


def blindly(seen: Observation, chance: Random) -> int:
    """Never look, and change any part."""
    return max(i for i, allowed in enumerate(seen.mask) if allowed)


def team() -> Team:
    """The whole team, as experiment files name it: ``team: {use: my_team:team}``."""
    return Team(
        name="my_team",
        roles=(
            Role(name="watcher", brief="Find out what is wrong with the machine, then hand over.", tools=("look",)),
            Role(name="mender", brief="Change the part that is broken.", tools=("change",)),
        ),
        tools={"look": tool(look, cost_usd=LOOK_USD), "change": tool(change, ends=True)},
        turns=Pipeline(order=("watcher", "mender")),
        world=Machine,
        generate=machine,
        terms={"mended": mended, "looked": looked},
        baselines={
            "by_the_signs": Baseline(policies={"watcher": by_the_signs, "mender": by_the_signs}),
            "blindly": Baseline(policies={"watcher": blindly, "mender": blindly}),
        },
        repeats=False,
    )
