"""The plant: faults, what each does to the sensors, limits, and what each work order is worth."""

from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from runtime.records import Closed

Fault = Literal["none", "bearing_wear", "imbalance", "misalignment", "overheating", "leak", "sensor_drift"]
Sensor = Literal["vibration", "temperature", "pressure_loss", "current", "oil_particles"]
"""``pressure_loss`` is how far the pressure lies below its set point; of every sensor, more is worse."""
Level = Literal["within limits", "above the warning limit", "above the alarm limit"]
Trend = Literal["steady", "rising", "jumped"]
Order = Literal[
    "run_on",
    "replace_bearing",
    "balance_rotor",
    "align_shaft",
    "clean_cooling",
    "reseal",
    "recalibrate_sensor",
    "overhaul",
]
Priority = Literal["routine", "urgent"]
Kind = Literal["pump", "fan", "compressor"]

FAULTS: tuple[Fault, ...] = get_args(Fault)
SENSORS: tuple[Sensor, ...] = get_args(Sensor)
LEVELS: tuple[Level, ...] = get_args(Level)
TRENDS: tuple[Trend, ...] = get_args(Trend)
ORDERS: tuple[Order, ...] = get_args(Order)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
KINDS: tuple[Kind, ...] = get_args(Kind)

Triple = tuple[float, float, float]


class SensorModel(Closed):
    """What a fault does to a sensor: probabilities, each finding independent of all others given the fault."""

    unit: str
    level: dict[Fault, Triple]
    """Probability of each level of the reading, in the order of ``LEVELS``."""
    trend: dict[Fault, Triple]
    """Probability of each trend of the last weeks, in the order of ``TRENDS``."""


class OrderModel(Closed):
    """A work order."""

    hours: float = Field(ge=0)
    """How long the machine stands, h; 0 where nothing is done to it."""
    payoff: dict[Fault, float]
    """What it is worth against each fault, USD."""


class Cost(Closed):
    """What each question is billed, USD."""

    read_sensor: float
    history: float
    thresholds: float


class Plant(Closed):
    """All the numbers."""

    faults: dict[Fault, float]
    """Probability of each fault; they sum to 1."""
    cost_usd: Cost
    sensors: dict[Sensor, SensorModel]
    machines: dict[Kind, dict[Sensor, tuple[float, float, float, float]]]
    """Lowest value, warning limit, alarm limit and highest value, in the sensor's unit."""
    orders: dict[Order, OrderModel]
    downtime_usd_per_hour: dict[Priority, float]
    waiting_usd: dict[Fault, float]
    """What the fault costs until a routine order is carried out, or where nothing is done."""

    def payoff(self, order: Order, priority: Priority, fault: Fault) -> float:
        """What a work order is worth, USD, the machine's standing still not counted."""
        model = self.orders[order]
        waits = priority == "routine" or model.hours == 0
        return model.payoff[fault] - (self.waiting_usd[fault] if waits else 0.0)

    def downtime(self, order: Order, priority: Priority) -> float:
        """What the machine's standing still costs, USD: more at once than in a planned break."""
        return self.orders[order].hours * self.downtime_usd_per_hour[priority]

    def remedy(self, fault: Fault) -> Order:
        """The work order that is worth most against the fault."""
        return max(ORDERS, key=lambda o: self.orders[o].payoff[fault])


@cache
def plant() -> Plant:
    """The plant that is shipped."""
    return Plant.model_validate_json(Path(__file__).with_name("plant_v1.json").read_bytes())


def drawn(weights: Triple, chance: float) -> int:
    """The place that a number in [0, 1) falls on, with these probabilities."""
    return next((i for i, end in enumerate(accumulate(weights)) if chance < end), len(weights) - 1)
