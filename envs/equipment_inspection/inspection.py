"""The team: inspector, analyst, planner."""

from functools import cache, partial
from typing import Any

from envs.equipment_inspection import expert, machine
from envs.equipment_inspection.cases import make_case
from envs.equipment_inspection.machine import Gateway, Machine
from envs.equipment_inspection.optimum import optimum, random_return
from envs.equipment_inspection.pay import TERMS
from envs.equipment_inspection.plant import FAULTS, KINDS, plant
from runtime.errors import TeamError
from runtime.tools import tool
from runtime.types import Baseline, Pipeline, Role, Scenario, Team

ROLES = (
    Role(
        name="inspector",
        brief="Read the sensors that you need, and no more: every reading is billed. A sensor may be off-line. "
        "Then hand over.",
        tools=("read_sensor",),
    ),
    Role(
        name="analyst",
        brief="Judge the readings. The history of a sensor tells wear (rising) from a knock or a drift (jumped). "
        "Then hand over.",
        tools=("history", "thresholds"),
    ),
    Role(
        name="planner",
        brief="Issue the work order that fits the fault. Urgent work stops the machine at once, which costs more; with "
        "routine work the fault goes on until the next planned break.",
        tools=("work_order",),
    ),
)


def team(offline: float = 0.07, mistyped: float = 0.15) -> Team:
    """The inspection of a plant's machines.

    Args:
        offline: probability that a sensor cannot be reached; 0 to 1.
        mistyped: probability that a sensor's number comes as text; 0 to 1.

    Raises:
        TeamError: an argument is out of its range.
    """
    if not (0 <= offline <= 1 and 0 <= mistyped <= 1):
        raise TeamError(f"equipment_inspection: offline {offline} and mistyped {mistyped} are probabilities, 0 to 1")
    cost = plant().cost_usd
    return Team(
        name="equipment_inspection",
        roles=ROLES,
        tools={
            "read_sensor": tool(machine.read_sensor, cost_usd=cost.read_sensor, loose=True),
            "history": tool(machine.history, cost_usd=cost.history),
            "thresholds": tool(machine.thresholds, cost_usd=cost.thresholds),
            "work_order": tool(machine.work_order, ends=True),
        },
        turns=Pipeline(order=tuple(r.name for r in ROLES)),
        world=partial(Machine, plant=plant(), gateway=Gateway(offline, mistyped)),
        generate=_generate,
        terms=TERMS,
        exact_for=frozenset({"payoff", "downtime", "tool_cost"}),
        baselines={
            "random": Baseline(exact=partial(random_return, plant())),
            "expert": Baseline(policies=expert.POLICIES),
            "optimal": Baseline(exact=partial(_optimum, offline)),
        },
        repeats=False,
        case_types=_case_types(),
    )


@cache
def _optimum(offline: float) -> float:
    return optimum(plant(), offline)


def _generate(split: str, seed: int, index: int) -> Scenario:
    return make_case(plant(), split, seed, index)


def _case_types() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    visible: dict[str, Any] = {"machine": text, "kind": {"enum": list(KINDS)}, "occasion": text}
    return {"visible": _object(visible), "truth": _object({"fault": {"enum": list(FAULTS)}})}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
