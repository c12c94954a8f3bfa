"""A team of two that the broken files refer to: what is wrong stands in the files, not here."""

from typing import Literal

from runtime.terms import term
from runtime.types import Baseline, Observation, Pipeline, Role, Scenario, Team, View


class Desk:
    """A world in which nothing happens."""

    def outcome(self) -> tuple[dict[str, object], bool]:
        return {}, True


@term(kind="outcome")
def paid(view: View) -> float:
    return 1.0


def first(seen: Observation, chance: object) -> int:
    return 0


def team(pace: Literal["slow", "fast"] = "slow", size: int = 1) -> Team:
    return Team(
        name="two_seats",
        roles=(Role(name="asker", brief="Ask.", tools=()), Role(name="teller", brief="Tell.", tools=())),
        tools={},
        turns=Pipeline(order=("asker", "teller")),
        world=lambda scenario: Desk(),
        generate=lambda split, seed, index: Scenario(id=f"{split}-{seed}-{index}", visible={}, truth={}),
        terms={"paid": paid},
        baselines={"rule": Baseline(policies={"asker": first})},
    )


def without_scenarios() -> Team:
    from dataclasses import replace

    return replace(team(), generate=None)


def fails() -> Team:
    raise RuntimeError("no desk is free")


NOT_A_TEAM = 3
