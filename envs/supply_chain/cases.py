"""Cases: what is seen at the start, drawn independently of what is wrong; the hidden cause; one finding a tool."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any

from envs.supply_chain.world_file import WorldFile
from runtime.seams import digest
from runtime.types import Scenario

SITES = ("Rotterdam", "Hamburg", "Antwerp", "Gdansk", "Valencia", "Genoa", "Piraeus", "Gothenburg")
"""Where a case can be; each has a port of the same name."""
PRODUCTS = ("pumps", "valves", "motors", "sensors", "cables", "filters")
SYMPTOMS = (
    "Service level fell below target at {site}",
    "Customers of {site} report late deliveries",
    "Stock of {product} at {site} runs low",
)

Generate = Callable[[str, int, int], Scenario]


def generator(world: WorldFile) -> Generate:
    """``generate(split, seed, index)``: case ``index`` of the stream that the world file, split and seed name."""
    causes, prior = world.causes, tuple(accumulate(world.prior.values()))
    chances = {c: findings_given(world, c) for c in causes}

    def generate(split: str, seed: int, index: int) -> Scenario:
        chance = Random(digest("supply_chain", split, seed, index))
        visible = _visible(chance)
        rows = chance.getrandbits(31)
        cause = causes[_place(prior, chance.random())]
        findings = draw_findings(chances[cause], chance)
        truth = {"cause": cause, "findings": findings}
        return Scenario(id=f"{split}-{seed}-{index}", visible=visible, truth=truth, seed=rows)

    return generate


Chances = Sequence[tuple[str, Sequence[str], Sequence[float]]]
"""For each tool: its name, its findings, and their cumulative probabilities under one cause."""


def findings_given(world: WorldFile, cause: str) -> Chances:
    """What each tool finds under that cause, and how likely."""
    return [(name, tool.findings, tuple(accumulate(tool.likelihood[cause]))) for name, tool in world.tools.items()]


def draw_findings(chances: Chances, chance: Random) -> dict[str, str]:
    """One finding a tool."""
    return {name: findings[_place(upto, chance.random())] for name, findings, upto in chances}


def _place(upto: Sequence[float], u: float) -> int:
    """Inverse of the cumulative probabilities; never a place of probability 0."""
    return bisect_right(upto, u * upto[-1], 0, len(upto) - 1)


def _visible(chance: Random) -> dict[str, Any]:
    site, product = chance.choice(SITES), chance.choice(PRODUCTS)
    symptom = chance.choice(SYMPTOMS).format(site=site, product=product)
    return {"sku": f"SKU-{chance.randrange(1000, 10000)}", "product": product, "site": site, "symptom": symptom}


def case_types(world: WorldFile) -> Mapping[str, Any]:
    """JSON Schemas of a case's visible and hidden part, for cases from files."""
    text = {"type": "string", "minLength": 1}
    visible = {"sku": text, "product": text, "site": {"enum": list(SITES)}, "symptom": text}
    findings = {name: {"enum": list(tool.findings)} for name, tool in world.tools.items()}
    return {
        "visible": {"type": "object", "properties": visible, "required": list(visible), "additionalProperties": False},
        "truth": {
            "type": "object",
            "properties": {
                "cause": {"enum": list(world.causes)},
                "findings": {"type": "object", "properties": findings, "additionalProperties": False},
            },
            "required": ["cause"],
            "additionalProperties": False,
        },
    }
