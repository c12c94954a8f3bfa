"""A two-armed bandit in words, after RAGEN (Wang et al. 2025): one arm always pays little, one seldom pays much.

One agent pulls one arm. The seldom one pays more in the mean, and its words do not say so: only trying tells.
"""

from random import Random
from typing import Annotated

from pydantic import WithJsonSchema

from runtime.errors import TeamError
from runtime.records import Json, ToolCall
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Baseline, Observation, Pipeline, Role, Scenario, ScriptedPolicy, Team, View

SURE_USD = 0.15
"""What the sure arm pays, US dollars."""
CHANCE, PRIZE_USD = 0.25, 1.0
"""How often the other one pays, and how much, US dollars: 0.25 in the mean."""
WORDS = {"sure": "a small coin, every time", "seldom": "a large coin, now and then"}
"""What the arms are said to pay."""


class Bandit:
    """One pull."""

    def __init__(self, scenario: Scenario) -> None:
        self._seldom: str = scenario.truth["seldom"]
        self._lucky = Random(scenario.seed).random() < CHANCE
        self.pulled: str | None = None
        self.won_usd = 0.0

    def pull(self, arm: str) -> float:
        """Pull an arm; what it pays."""
        self.pulled = arm
        self.won_usd = (PRIZE_USD if self._lucky else 0.0) if arm == self._seldom else SURE_USD
        return self.won_usd

    def outcome(self) -> tuple[dict[str, Json], bool]:
        """What was won; success is the arm that pays more in the mean."""
        return {"won_usd": self.won_usd}, self.pulled == self._seldom


@term(kind="outcome", reads=["outcome"], at_end=True)
def won(view: View) -> float:
    """What the pull paid, US dollars."""
    return float(view.outcome["won_usd"])


def team(sure: str = "phoenix", seldom: str = "dragon") -> Team:
    """One gambler, two arms of these names.

    Raises:
        TeamError: the names are the same.
    """
    if sure == seldom:
        raise TeamError(f"both arms are called {sure!r}")
    named = {"sure": sure, "seldom": seldom}
    choice = WithJsonSchema({"enum": sorted(named.values())})

    def pull(world: Bandit, arm: Annotated[str, choice]) -> float:
        """Pull that arm of the machine."""
        return world.pull(arm)

    def generate(split: str, seed: int, index: int) -> Scenario:
        chance = Random(digest("bandit", split, seed, index))
        order = chance.sample(("sure", "seldom"), 2)
        arms = {named[kind]: WORDS[kind] for kind in order}
        visible = {"machine": chance.randrange(1000), "arms": arms}
        return Scenario(
            id=f"{split}-{seed}/{index}", visible=visible, truth={"seldom": seldom}, seed=chance.randrange(2**31)
        )

    return Team(
        name="bandit",
        roles=(Role(name="gambler", brief="Pull the arm of the machine that pays more.", tools=("pull",)),),
        tools={"pull": tool(pull, ends=True)},
        turns=Pipeline(order=("gambler",)),
        world=Bandit,
        generate=generate,
        terms={"won": won},
        baselines={
            "random": Baseline(exact=lambda: (SURE_USD + CHANCE * PRIZE_USD) / 2),
            "always_sure": Baseline(policies={"gambler": _always(sure)}, exact=lambda: SURE_USD),
            "optimal": Baseline(policies={"gambler": _always(seldom)}, exact=lambda: CHANCE * PRIZE_USD),
        },
    )


def _always(arm: str) -> ScriptedPolicy:
    def rule(_: Observation, __: Random) -> ToolCall:
        return ToolCall(tool="pull", args={"arm": arm})

    return rule
