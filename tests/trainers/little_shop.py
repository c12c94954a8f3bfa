"""A team as a user would write it beside his experiment file: the buyer looks, the clerk sells what was wanted."""

import os
import sys
from random import Random
from typing import Literal

from runtime.records import Json
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Baseline, Observation, Pipeline, RewardTerm, Role, Scenario, Team, View

WARES = ("tea", "salt")
LOOK_USD = 0.25


class Shop:
    """What the tools act on."""

    def __init__(self, scenario: Scenario, burns: str = "") -> None:
        if burns == "raises":
            raise OSError("the shop has burnt down")
        if burns == "exits":
            sys.exit(0)
        if burns == "dies":
            os._exit(9)
        self.wanted: str = scenario.truth["wanted"]
        self.sold: str | None = None

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"sold": self.sold}, self.sold == self.wanted


def look(world: Shop) -> str:
    """Look at the shopping list."""
    return f"the list says {world.wanted}"


def sell(world: Shop, ware: Literal["tea", "salt"]) -> str:
    """Sell it, which ends the case."""
    world.sold = ware
    return "sold"


def generate(split: str, seed: int, index: int) -> Scenario:
    chance = Random(digest(split, seed, index))
    wanted = chance.choice(WARES)
    return Scenario(
        id=f"{split}-{seed}-{index}",
        visible={"case": index},
        truth={"wanted": wanted},
        seed=chance.randrange(2**31),
    )


@term(kind="outcome", reads=["outcome"], at_end=True)
def right(view: View) -> float:
    return 4.0 if view.success else -4.0


@term(kind="cost")
def billed(view: View) -> float:
    return -sum(getattr(r, "cost_usd", 0.0) for r in view.step)


def lossy(every: int, after: int = 0) -> RewardTerm:
    """Pays like ``right``, and fails in one case of so many, from some case on."""

    @term(kind="outcome", reads=["outcome"], at_end=True, name="lossy")
    def judge(view: View) -> float:
        case = view.visible["case"]
        if case >= after and case % every == 0:
            raise ValueError("nobody wrote the price down")
        return 4.0 if view.success else -4.0

    return judge


def by_the_list(seen: Observation, chance: Random) -> int:
    """Look once, then do what the list says."""
    calls = [c.tool for c in seen.candidates]
    wants = next((w for w in WARES if f"list says {w}" in seen.text), None)
    legal = [i for i, ok in enumerate(seen.mask) if ok]
    if "look" in calls and calls.index("look") in legal:
        return calls.index("look")
    fitting = [i for i in legal if seen.candidates[i].args.get("ware") == wants]
    return (fitting or legal)[0]


def team(burns: Literal["", "raises", "exits", "dies"] = "", from_case: int = 0) -> Team:
    return Team(
        name="little_shop",
        roles=(
            Role(name="buyer", brief="Find out what is wanted.", tools=("look",)),
            Role(name="clerk", brief="Sell it.", tools=("sell",)),
        ),
        tools={t.name: t for t in (tool(look, cost_usd=LOOK_USD), tool(sell, ends=True))},
        turns=Pipeline(order=("buyer", "clerk")),
        world=lambda scenario: Shop(scenario, burns if from_case <= scenario.visible["case"] < 50_000 else ""),
        generate=generate,
        terms={"right": right, "billed": billed},
        baselines={"by_the_list": Baseline(policies={"buyer": by_the_list, "clerk": by_the_list})},
        repeats=False,
    )
