"""One machine with its hidden fault: what the tools act on."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Annotated, Literal

from pydantic import WithJsonSchema

from envs.equipment_inspection.plant import (
    LEVELS,
    TRENDS,
    Fault,
    Kind,
    Level,
    Order,
    Plant,
    Priority,
    Sensor,
    Trend,
    drawn,
)
from runtime.records import Closed, Json
from runtime.seams import uniform
from runtime.types import Scenario

WEEKS = 6
"""How far a sensor's history reaches back, weeks."""


class Reading(Closed):
    """What a sensor says now."""

    value: float
    unit: str
    status: Level


class History(Closed):
    """A sensor's last weeks."""

    weeks: tuple[float, ...]
    """Change against the first week, oldest first, %."""
    unit: Literal["%"]
    trend: Trend


class Limits(Closed):
    """From which value on a sensor warns and alarms."""

    warning: float
    alarm: float
    unit: str


class Ordered(Closed):
    """A work order that was issued."""

    order: Order
    priority: Priority
    hours: float
    """How long the machine will stand, h."""


ReadingAnswer = Annotated[dict[str, Json], WithJsonSchema(Reading.model_json_schema())]
HistoryAnswer = Annotated[dict[str, Json], WithJsonSchema(History.model_json_schema())]
LimitsAnswer = Annotated[dict[str, Json], WithJsonSchema(Limits.model_json_schema())]
OrderAnswer = Annotated[dict[str, Json], WithJsonSchema(Ordered.model_json_schema())]


@dataclass(frozen=True, slots=True)
class Gateway:
    """How well the sensors' gateway works; none of it depends on the fault."""

    offline: float
    """Probability that a sensor cannot be reached in an episode."""
    mistyped: float
    """Probability that a sensor's number comes as text."""


class Machine:
    """A machine. Its findings are drawn from the fault when they are asked for, each by its own key."""

    def __init__(self, scenario: Scenario, plant: Plant, gateway: Gateway) -> None:
        self.plant, self._gateway = plant, gateway
        self.name: str = scenario.visible["machine"]
        self.kind: Kind = scenario.visible["kind"]
        self._fault: Fault = scenario.truth["fault"]
        self._seed = scenario.seed
        self._issued: tuple[Order, Priority] | None = None

    def _chance(self, *key: str | int) -> float:
        return uniform(self._seed, *key)

    def reading(self, sensor: Sensor) -> dict[str, Json]:
        """What the sensor says, as the gateway passes it on: sometimes the number is a text."""
        if self._chance("offline", sensor) < self._gateway.offline:
            raise ConnectionError(f"sensor {sensor} of {self.name} is off-line")
        model, limits = self.plant.sensors[sensor], self.plant.machines[self.kind][sensor]
        level = drawn(model.level[self._fault], self._chance("level", sensor))
        low, high = limits[level], limits[level + 1]
        value = floor(1000 * (low + (high - low) * self._chance("value", sensor))) / 1000
        mistyped = self._chance("type", sensor) < self._gateway.mistyped
        return {"value": str(value) if mistyped else value, "unit": model.unit, "status": LEVELS[level]}

    def history(self, sensor: Sensor) -> dict[str, Json]:
        """The sensor's last weeks, relative to the first, so that they say nothing about its level."""
        trend = TRENDS[drawn(self.plant.sensors[sensor].trend[self._fault], self._chance("trend", sensor))]
        size, jump = 15 + 15 * self._chance("size", sensor), 1 + int(self._chance("jump", sensor) * (WEEKS - 1))
        noise = [4 * self._chance("noise", sensor, w) - 2 for w in range(WEEKS)]
        weeks = [0.0, *(round(size * _rise(trend, w, jump) + noise[w], 1) for w in range(1, WEEKS))]
        return {"weeks": weeks, "unit": "%", "trend": trend}

    def limits(self, sensor: Sensor) -> dict[str, Json]:
        """The sensor's limits on this kind of machine."""
        _, warning, alarm, _ = self.plant.machines[self.kind][sensor]
        return {"warning": warning, "alarm": alarm, "unit": self.plant.sensors[sensor].unit}

    def issue(self, order: Order, priority: Priority) -> dict[str, Json]:
        """Issue the work order."""
        self._issued = (order, priority)
        return {"order": order, "priority": priority, "hours": self.plant.orders[order].hours}

    def outcome(self) -> tuple[Mapping[str, Json], bool]:
        """What the order is worth, USD; without one the machine runs on. A success when it is the fault's remedy."""
        order, priority = self._issued or ("run_on", "routine")
        worth = {
            "order": order,
            "priority": priority,
            "payoff_usd": self.plant.payoff(order, priority, self._fault),
            "downtime_usd": self.plant.downtime(order, priority),
        }
        return worth, self._issued is not None and order == self.plant.remedy(self._fault)


def _rise(trend: Trend, week: int, jump: int) -> float:
    """How much of its whole change a sensor has made by that week, 0 to 1."""
    if trend == "rising":
        return week / (WEEKS - 1)
    return float(trend == "jumped" and week >= jump)


def read_sensor(machine: Machine, sensor: Sensor) -> ReadingAnswer:
    """Read a sensor: its value, unit, and where that lies against its limits. Fails when the sensor is off-line."""
    return machine.reading(sensor)


def history(machine: Machine, sensor: Sensor) -> HistoryAnswer:
    """Look up how a sensor's readings changed over the last six weeks."""
    return machine.history(sensor)


def thresholds(machine: Machine, sensor: Sensor) -> LimitsAnswer:
    """Look up from which value on a sensor warns and alarms on this kind of machine."""
    return machine.limits(sensor)


def work_order(machine: Machine, order: Order, priority: Priority) -> OrderAnswer:
    """Issue the work order: urgent stops the machine at once, routine waits for the next break. Ends the case."""
    return machine.issue(order, priority)
