"""Teams in which somebody sees, or keeps, what is none of his business."""

import base64
import codecs
import hashlib
from dataclasses import replace
from random import Random

from rewards.audit.material import Evaluating, Material
from rewards.standardize import RewardStandardizer
from runtime.records import Json
from runtime.seams import digest
from runtime.terms import term
from runtime.tools import tool
from runtime.types import Observation, Scenario, Team, View
from tests.audit.tiny import COLOURS, Box, asked, cases, generate, right, showing, tiny
from tests.audit.zoo.teams import of


def place(case: Scenario) -> int:
    return COLOURS.index(str(case.truth["colour"]))


def rotated(case: Scenario) -> str:
    return codecs.encode(str(case.truth["colour"]), "rot13")


LETTERS = "abcdefghijklmnopqrstuvwx"


def token(case: Scenario) -> str:
    """Eight letters by chance, of which the fourth tells."""
    chance = Random(case.seed)
    letters = [chance.choice(LETTERS) for _ in range(8)]
    letters[3] = LETTERS[3 * chance.randrange(8) + place(case)]
    return "".join(letters)


def digits(case: Scenario) -> str:
    """Nine digits by chance, whose sum tells."""
    chance = Random(case.seed)
    found = [chance.randrange(10) for _ in range(9)]
    while sum(found) % 3 != place(case):
        found[chance.randrange(9)] = chance.randrange(10)
    return "".join(map(str, found))


def turned(case: Scenario) -> dict[str, Json]:
    """The same keys in another order."""
    keys = ["north", "east", "south"]
    at = place(case)
    return {"winds": dict.fromkeys(keys[at:] + keys[:at], case.seed % 7)}


# -- the truth before the agents' eyes

SHOWN: dict[str, Team] = {
    "told outright": tiny(world=showing(lambda box, agent: {"hint": box.scenario.truth["colour"]})),
    "in base64": tiny(
        generate=cases(lambda c: {"tag": base64.b64encode(f"{c.id}/{c.truth['colour']}".encode()).decode()})
    ),
    "hashed": tiny(generate=cases(lambda c: {"tag": hashlib.sha256(str(c.truth["colour"]).encode()).hexdigest()})),
    "through a peer's screen": tiny(
        world=showing(lambda box, who: {"hint": str(box.scenario.truth["remark"])[::-1]} if who == "judge" else None)
    ),
    "as the length of a list": tiny(world=showing(lambda box, agent: {"rows": [0] * (1 + place(box.scenario))})),
    "in the order of a list": tiny(
        world=showing(lambda box, agent: {"rows": sorted(COLOURS, key=lambda c: c != box.scenario.truth["colour"])})
    ),
    "as a number of blanks": tiny(world=showing(lambda box, agent: {"hint": " " * (1 + place(box.scenario))})),
}

PREDICTABLE: dict[str, Team] = {
    name: tiny(generate=cases(more))
    for name, more in {
        "an id that grows with the label": lambda c: {"order": f"A-{1000 * place(c) + len(c.id)}{c.seed % 10}"},
        "row order": lambda c: {"rows": [*COLOURS[place(c) :], *COLOURS[: place(c)]]},
        "a timestamp": lambda c: {"at": f"2024-0{1 + place(c)}-1{c.seed % 10}T08:00:00"},
        "the length of a text": lambda c: {"text": "x" * (10 + 3 * place(c) + c.seed % 2)},
        "a field that is there or not": lambda c: {"note": "fragile"} if place(c) == 1 else {},
        "a number that leans": lambda c: {"weight": 10 + 4 * place(c) + (c.seed % 7)},
        "parity": lambda c: {"ticket": 2 * (c.seed % 5000) + (place(c) == 2)},
        "another alphabet": lambda c: {"mark": rotated(c)},
        "a letter in the middle": lambda c: {"token": token(c)},
        "the sum of the digits": lambda c: {"ticket": digits(c)},
        "what is left of sevens": lambda c: {"ticket": c.seed % 100_000 // 7 * 7 + place(c)},
        "what is left of elevens": lambda c: {"ticket": f"T{c.seed % 100_000 // 11 * 11 + 2 * place(c)}"},
        "the order of keys": turned,
    }.items()
}


# -- players that have seen it


def _knowing(team: Team) -> Team:
    """The judge reads it off the order's number."""
    rules = tiny().baselines["careful"].policies or {}

    def knows(seen: Observation, _chance: Random) -> int:
        return int(seen.seen[0].data["order"]) // 7

    baseline = replace(team.baselines["careful"], policies={"scout": rules["scout"], "judge": knows})
    return replace(team, baselines={"careful": baseline})


KNOWING = _knowing(tiny(generate=cases(lambda c: {"order": 7 * place(c)})))


# -- held-out cases that are trained on

STREAMS = {
    "the same stream for both": lambda split, seed, index: generate("any", 0, index),
    "a stream shifted by forty": lambda split, seed, index: generate("any", 0, index + 40 * (split == "eval")),
    "the same cases under other names": lambda split, seed, index: replace(
        generate("any", 0, index), id=f"{split}-{index}", seed=index * seed
    ),
    "a stream shifted by five thousand": lambda split, seed, index: replace(
        generate("any", 0, index + 5_000 * (split == "eval")), id=f"{split}-{seed}-{index}"
    ),
    "a seed that is added": lambda split, seed, index: replace(
        generate("any", 0, 1_000 * seed + index), id=f"{split}-{seed}-{index}"
    ),
    "drawn from one list": lambda split, seed, index: replace(
        generate("any", 0, Random(digest(split, seed, index)).randrange(600)), id=f"{split}-{seed}-{index}"
    ),
    "counted through one list": lambda split, seed, index: replace(
        generate("any", 0, (index * 7919 + seed * 131) % 1_500), id=f"{split}-{seed}-{index}"
    ),
}
OVERLAPPING: dict[str, Team] = {name: tiny(generate=stream) for name, stream in STREAMS.items()}


# -- evaluations that leave a trace


def evaluated(touches: str, seed: int) -> Material:
    statistics, seen = RewardStandardizer(), {"count": 3}
    statistics.update("a", [1.0, 2.0])

    def evaluate() -> None:
        statistics.transform("a", [3.0])
        if touches == "standardizer":
            statistics.update("a", [3.0])
        elif touches == "observations":
            seen["count"] += 1

    made = of(seed=seed)
    made.evaluating = Evaluating({"standardizer": statistics.state, "observations": lambda: seen}, evaluate)
    return made


# -- what others have found, or were paid


def told_pay(seed: int) -> Material:
    board: list[float] = []

    @term(kind="cost")
    def telling(view: View) -> float:
        board[:] = [asked.function(view)]
        return board[0]

    return of(tiny(world=showing(lambda box, agent: {"board": list(board)})), (right, telling), seed)


def overheard(spell) -> Team:
    look = showing(lambda box, agent: {"screen": [spell(x) for x in box.found]} if agent == "judge" else None)
    turns = type(tiny().turns)(order=("scout", "judge"), handoff="verdict", verdicts=("good", "bad"))
    return tiny(world=look, turns=turns)


# -- what outlives a run


def _shared_list() -> Team:
    kept: list[str] = []

    def weigh(world: Box) -> str:
        """Weigh the box."""
        kept.append(world.scenario.id)
        return f"weighed {len(kept)}"

    return tiny(tools={**tiny().tools, "weigh": tool(weigh, name="weigh")})


def _kept_in_the_class() -> Team:
    class Drawer(Box):
        newest = ""

        def __init__(self, scenario: Scenario) -> None:
            super().__init__(scenario)
            Drawer.newest = scenario.id

        def look(self, agent: str) -> str:
            return f"newest {Drawer.newest}"

    return tiny(world=Drawer)


def _dice() -> Team:
    dice = Random(7)

    def weigh(world: Box) -> str:
        """Weigh the box."""
        return f"weighed {dice.random()}"

    return tiny(tools={**tiny().tools, "weigh": tool(weigh, name="weigh")})


SHARING = {"a list that grows": _shared_list, "kept in the class": _kept_in_the_class, "dice for all": _dice}
