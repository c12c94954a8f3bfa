"""A team of two in which faults can be planted: the scout asks, the judge names the colour that was hidden."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, Literal

from assembly.stage import team_material
from rewards.audit.material import Effort, Material
from rewards.mix import Mix, Weighted
from runtime.records import Json, ToolAnswered
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Baseline, Observation, Pipeline, RewardTerm, Role, Scenario, Team, View

COLOURS = ("crimson", "emerald", "sapphire")
QUICK = Effort(episodes=20, examples=8, openings=120)


class Box:
    """What the tools act on."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.named = scenario, ""
        self.found: list[str] = []

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"named": self.named}, self.named == self.scenario.truth["colour"]


def weigh(world: Box) -> str:
    """Weigh the box: says little."""
    world.found.append(f"weight slip {digest('slip', world.scenario.id) % 10**8:08d}")
    return world.found[-1]


def peek(world: Box) -> str:
    """Look into the box."""
    return f"it looks {world.scenario.truth['colour']}"


def name_it(world: Box, colour: Literal["crimson", "emerald", "sapphire"]) -> str:
    """Name the colour, which ends the case."""
    world.named = colour
    return "named"


def generate(split: str, seed: int, index: int) -> Scenario:
    chance = Random(digest("tiny", split, seed, index))
    visible = {"label": f"box {chance.randrange(10**6)}", "shelf": chance.choice(["left", "right"])}
    truth: dict[str, Json] = {"colour": chance.choice(COLOURS), "remark": f"packed by hand {chance.randrange(10**9)}"}
    return Scenario(id=f"{split}-{seed}-{index}", visible=visible, truth=truth, seed=chance.getrandbits(31))


@term(kind="outcome", reads=["outcome"], at_end=True)
def right(view: View) -> float:
    return 1.0 if view.success else -1.0


@term(kind="cost")
def asked(view: View) -> float:
    return -0.1 * sum(isinstance(r, ToolAnswered) for r in view.step)


def careful(seen: Observation, chance: Random) -> int:
    """Peek, hand over, name what was seen."""
    tools = [c.tool for c in seen.candidates]
    if "peek" in tools:
        place = tools.index("peek")
        return place if seen.mask[place] else tools.index("hand_over")
    told = [c for c in COLOURS if f"it looks {c}" in seen.text]
    return COLOURS.index(told[0]) if told else chance.randrange(3)


def tiny(**changes: Any) -> Team:
    """The honest team, or one with changed parts."""
    team = Team(
        name="tiny",
        roles=(
            Role(name="scout", brief="Find out the colour.", tools=("weigh", "peek")),
            Role(name="judge", brief="Name it.", tools=("name_it",)),
        ),
        tools={t.name: t for t in (tool(weigh), tool(peek), tool(name_it, ends=True))},
        turns=Pipeline(order=("scout", "judge")),
        world=Box,
        generate=generate,
        terms={"right": right, "asked": asked},
        baselines={"careful": Baseline(policies={"scout": careful, "judge": careful})},
        repeats=False,
    )
    return replace(team, **changes)


def material(team: Team | None = None, terms: tuple[RewardTerm, ...] = (right, asked), seed: int = 0) -> Material:
    """The team as the audit reads it."""
    return team_material(team or tiny(), Mix([Weighted(t) for t in terms]), seed=seed, effort=QUICK)


def showing(look: Callable[[Box, str], Json]) -> Callable[[Scenario], Box]:
    """A world that shows something at each turn."""

    class Showing(Box):
        def look(self, agent: str) -> Json:
            return look(self, agent)

    return Showing


def cases(more: Callable[[Scenario], Mapping[str, Json]]) -> Callable[[str, int, int], Scenario]:
    """Scenarios that show more than the honest ones."""

    def made(split: str, seed: int, index: int) -> Scenario:
        honest = generate(split, seed, index)
        return replace(honest, visible={**honest.visible, **more(honest)})

    return made
