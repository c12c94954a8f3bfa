"""Which machine is inspected, and its hidden fault. Nothing that is shown depends on the fault."""

from random import Random

from envs.equipment_inspection.plant import KINDS, Plant
from runtime.seams import digest
from runtime.types import Scenario

OCCASIONS = (
    "routine round of the month",
    "the shift reports an unusual noise",
    "restart after a holiday",
    "an auditor asks for a recent inspection",
    "the operator has a doubt and wants a second look",
)


def make_case(plant: Plant, split: str, seed: int, index: int) -> Scenario:
    """One inspection."""
    key = digest("equipment_inspection", split, seed, index)
    chance = Random(key)
    kind = chance.choice(KINDS)
    visible = {
        "machine": f"{kind[0].upper()}-{chance.randrange(100, 1000)}",
        "kind": kind,
        "occasion": chance.choice(OCCASIONS),
    }
    fault = chance.choices(list(plant.faults), list(plant.faults.values()))[0]
    return Scenario(id=f"{split}-{seed}-{index}", visible=visible, truth={"fault": fault}, seed=key % 2**31)
