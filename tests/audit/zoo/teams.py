"""Teams that the animals of the zoo live in, beside the scout and the judge of ``tests.audit.tiny``: all honest."""

from collections.abc import Sequence
from random import Random
from typing import Any, Literal

from assembly.stage import team_material
from envs.scenarios import Listed
from rewards.audit.material import Effort, Material
from rewards.mix import Mix, Weighted
from runtime.records import Json, ToolCall
from runtime.seams import digest, uniform
from runtime.terms import term
from runtime.tools import tool
from runtime.types import (
    Baseline,
    Observation,
    Pipeline,
    RewardTerm,
    Role,
    RoundRobin,
    Scenario,
    Simultaneous,
    Team,
    View,
)
from tests.audit.tiny import asked, right, tiny

EFFORT = Effort(episodes=40, examples=8, openings=120)


def of(team: Team | None = None, terms: Sequence[RewardTerm | Weighted] = (right, asked), seed: int = 0) -> Material:
    """What the audit reads of a team with these terms."""
    weighted = [t if isinstance(t, Weighted) else Weighted(t) for t in terms]
    return team_material(team or tiny(), Mix(weighted), seed=seed, effort=EFFORT)


def listed(team: Team, terms: Sequence[RewardTerm], many: int, seed: int) -> Material:
    """A team with a handful of cases from a file."""
    made = of(team, terms, seed)
    assert team.generate is not None
    train = [team.generate("train", 1, k) for k in range(many)]
    held_out = [team.generate("eval", 2, k) for k in range(many)]
    made.sources = {"train": Listed(train, seed), "eval": Listed(held_out, 0, shuffle=False)}
    made.counts = {"train": many, "eval": many}
    made.listed = frozenset({"train", "eval"})
    return made


# -- the lift: two hands, simultaneously, for some rounds, in a wind that blows by chance


class Load:
    """Rises when both pull, falls when one does."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.height, self.round, self.pulled = scenario, 0.0, 0, 0

    def look(self, agent: str) -> Json:
        return {"height": round(self.height, 2), "round": self.round}

    def end_round(self) -> bool:
        wind = uniform("wind", self.scenario.seed, self.round) - 0.5
        self.height += {0: -0.2, 1: -0.5, 2: 1.0}[self.pulled] + wind
        self.round, self.pulled = self.round + 1, 0
        return False

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"height": self.height}, self.height > self.scenario.truth["needed"]


def pull(world: Load) -> str:
    """Pull the rope."""
    world.pulled += 1
    return "pulled"


def hold(world: Load) -> str:
    """Hold the rope."""
    return "held"


def lift_case(split: str, seed: int, index: int) -> Scenario:
    chance = Random(digest("lift", split, seed, index))
    truth: dict[str, Json] = {"needed": chance.choice([1.0, 2.0, 3.0])}
    return Scenario(id=f"{split}-{seed}-{index}", visible={"rope": "long"}, truth=truth, seed=chance.getrandbits(31))


@term(kind="outcome", reads=["outcome"], at_end=True)
def height(view: View) -> float:
    """How high it ended; below nothing, how low."""
    return float(view.outcome["height"])


@term(kind="outcome", reads=["outcome"], at_end=True)
def solved(view: View) -> float:
    """1 or 0."""
    return float(view.success)


def both_pull(seen: Observation, _chance: Random) -> int:
    return next(i for i, c in enumerate(seen.candidates) if c.tool == "pull")


def lift(**changes: Any) -> Team:
    """The lift; with ``max_turns=4``, cut before its end."""
    parts: dict[str, Any] = {
        "turns": Simultaneous(order=("left", "right"), rounds=5),
        "baselines": {"both": Baseline(policies={"left": both_pull, "right": both_pull})},
    }
    return Team(
        name="lift",
        roles=tuple(Role(name=n, brief="Lift it together.", tools=("pull", "hold")) for n in ("left", "right")),
        tools={t.name: t for t in (tool(pull, cost_usd=0.01), tool(hold))},
        world=Load,
        generate=lift_case,
        **(parts | changes),
    )


# -- the clerk: alone, answers in words of its own


class Counter:
    """Where customers ask for a town."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.said = scenario, ""

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"said": self.said}, self.said == self.scenario.truth["town"]


TOWNS = ("Aarhus", "Bergen", "Cadiz", "Dresden")


def look_up(world: Counter) -> str:
    """Look the town up."""
    return f"the town is {world.scenario.truth['town']}"


def answer(world: Counter, text: str) -> str:
    """Answer the customer, which ends the case."""
    world.said = text
    return "thanks"


def town_case(split: str, seed: int, index: int) -> Scenario:
    chance = Random(digest("clerk", split, seed, index))
    visible: dict[str, Json] = {"question": f"Where is office {chance.randrange(10**6)}?"}
    return Scenario(
        id=f"{split}-{seed}-{index}", visible=visible, truth={"town": chance.choice(TOWNS)}, seed=chance.getrandbits(31)
    )


def knows_how(seen: Observation, chance: Random) -> int:
    """Looks it up and says it."""
    tools = [(c.tool, c.args.get("text")) for c in seen.candidates]
    if "the town is" not in seen.text:
        return tools.index(("look_up", None))
    return next(i for i, (t, x) in enumerate(tools) if t == "answer" and x and f"the town is {x}" in seen.text)


def clerk(**changes: Any) -> Team:
    """The clerk, who may also say nothing, or a number."""
    calls = (ToolCall(tool="look_up"), *(ToolCall(tool="answer", args={"text": t}) for t in ("", *TOWNS, "12")))
    parts: dict[str, Any] = {"baselines": {"gold": Baseline(policies={"clerk": knows_how})}}
    return Team(
        name="clerk",
        roles=(Role(name="clerk", brief="Say where it is.", tools=("look_up", "answer"), calls=calls),),
        tools={t.name: t for t in (tool(look_up, cost_usd=0.05), tool(answer, ends=True))},
        turns=Pipeline(order=("clerk",)),
        world=Counter,
        generate=town_case,
        repeats=False,
        **(parts | changes),
    )


# -- the lottery: three in turn, one number in forty is right


class Draw:
    """Whoever names the number wins for all."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.won = scenario, False

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"won": self.won}, self.won


def bet(world: Draw, tens: Literal[0, 1, 2, 3], ones: Literal[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) -> str:
    """Bet on a number."""
    world.won |= 10 * tens + ones == world.scenario.truth["number"]
    return "noted"


def lottery_case(split: str, seed: int, index: int) -> Scenario:
    chance = Random(digest("lottery", split, seed, index))
    return Scenario(id=f"{split}-{seed}-{index}", visible={"day": "today"}, truth={"number": chance.randrange(40)})


def lottery(**changes: Any) -> Team:
    """The lottery: sparse, with nobody who knows how."""
    return Team(
        name="lottery",
        roles=tuple(Role(name=n, brief="Bet.", tools=("bet",)) for n in ("ann", "bob", "cy")),
        tools={"bet": tool(bet)},
        turns=RoundRobin(order=("ann", "bob", "cy"), rounds=1),
        world=Draw,
        generate=lottery_case,
        **changes,
    )
