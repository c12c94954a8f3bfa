"""What shows once tools have been asked: teams that tell more than they say, and honest ones that tell by design."""

import base64
from collections.abc import Callable
from random import Random
from typing import Literal

from runtime.records import Json
from runtime.tools import tool
from runtime.types import Baseline, Observation, Team
from tests.audit.tiny import COLOURS, Box, careful, showing, tiny


def colour(box: Box) -> str:
    return str(box.scenario.truth["colour"])


def coded(box: Box) -> str:
    return base64.b64encode(f"it looks {colour(box)}".encode()).decode()


def weighing(answer: Callable[[Box], Json]) -> Team:
    """The scout's scales, which good play never asks, answer so."""

    def weigh(world: Box) -> Json:
        """Weigh the box."""
        return answer(world)

    return tiny(tools={**tiny().tools, "weigh": tool(weigh, name="weigh")})


def peeking(answer: Callable[[Box], Json], look: Callable[[Box, str], Json] | None = None) -> Team:
    """The look into the box, which good play needs, answers so; the baseline reads the colour in any spelling."""

    def peek(world: Box) -> Json:
        """Look into the box."""
        world.found.append(f"it looks {colour(world)}")
        return answer(world)

    policies = dict.fromkeys(("scout", "judge"), reads_any)
    changes = {"world": showing(look)} if look else {}
    made = tiny(baselines={"careful": Baseline(policies=policies)}, **changes)
    return tiny(tools={**made.tools, "peek": tool(peek, name="peek")}, world=made.world, baselines=made.baselines)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda c: f"it looks {c}",
    "base64": lambda c: base64.b64encode(f"it looks {c}".encode()).decode(),
    "first of a list": lambda c: f'["{c}"',
    "at the end of the walk": lambda c: f'"here":"{c}"',
}


def reads_any(seen: Observation, chance: Random) -> int:
    if any(c.tool == "peek" for c in seen.candidates):
        return careful(seen, chance)
    told = [c for c in COLOURS if any(spell(c) in seen.text for spell in SPELLINGS.values())]
    return COLOURS.index(told[0]) if told else chance.randrange(3)


# -- with a fault


def _after_weighing(shown: Callable[[Box], Json]) -> Team:
    return tiny(world=showing(lambda box, agent: {"lamp": shown(box) if box.found else "off"}))


def _names_it(world: Box, colour: Literal["crimson", "emerald", "sapphire"]) -> str:
    """Name the colour, which ends the case."""
    if colour != world.scenario.truth["colour"]:
        raise ValueError(f"not {colour}: expected {world.scenario.truth['colour']}")
    world.named = colour
    return "named"


def _jams(world: Box) -> str:
    """Weigh the box."""
    raise RuntimeError(f"scales jammed: the {world.scenario.truth['colour'].upper()} box is too heavy")


def _rotated(box: Box) -> Json:
    place = COLOURS.index(colour(box))
    rooms = ["cellar", "attic", "yard"]
    return [*rooms[place:], *rooms[:place]]


TOLD: dict[str, Team] = {
    "on a lamp, once something was weighed": _after_weighing(colour),
    "in a number, once something was weighed": _after_weighing(lambda box: 7 + COLOURS.index(colour(box))),
    "in the dots of an answer": weighing(lambda box: "weighed" + "." * COLOURS.index(colour(box))),
    "in the spaces of an answer": weighing(lambda box: "weighed" + " " * COLOURS.index(colour(box)) + "twice"),
    "in the order of an answer": weighing(_rotated),
    "in base64, by the scales": weighing(coded),
    "in the error of a wrong answer": tiny(
        tools={**tiny().tools, "name_it": tool(_names_it, name="name_it", ends=True)}, repeats=True
    ),
    "in capitals, by jammed scales": tiny(tools={**tiny().tools, "weigh": tool(_jams, name="weigh")}),
}


# -- honest


def _says_no(world: Box, colour: Literal["crimson", "emerald", "sapphire"]) -> str:
    """Name the colour, which ends the case; a wrong one may be tried again."""
    if colour != world.scenario.truth["colour"]:
        raise ValueError(f"not {colour}")
    world.named = colour
    return "named"


BY_DESIGN: dict[str, Team] = {
    "a board for all": peeking(lambda box: f"it looks {colour(box)}", lambda box, agent: {"board": list(box.found)}),
    "a label to decode": peeking(coded),
    "a ranking": peeking(lambda box: sorted(COLOURS, key=lambda c: c != colour(box))),
    "a look around after a step": peeking(
        lambda box: "done", lambda box, agent: {"here": colour(box) if box.found else "the door"}
    ),
    "wrong, and try again": tiny(
        tools={**tiny().tools, "name_it": tool(_says_no, name="name_it", ends=True)}, repeats=True, max_turns=12
    ),
}
