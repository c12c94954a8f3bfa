"""The inspection team: typed answers, sensors that are off-line, and its exact baselines."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from envs.equipment_inspection import team as make
from envs.equipment_inspection.optimum import optimum
from envs.equipment_inspection.plant import FAULTS, LEVELS, ORDERS, PRIORITIES, SENSORS, Plant, Sensor, plant
from envs.scenarios import Generated
from envs.session import Session
from runtime.records import ToolAnswered, ToolCall
from runtime.types import HAND_OVER, Team
from tests.teams.playing import interval, returns

TEAM = make()
WEIGHTS = {"payoff": 1.0, "downtime": 1.0, "tool_cost": 1.0}


def read_all(team: Team, k: int) -> tuple[Session, list[ToolAnswered]]:
    session = Session(team, Generated(team, "train", 1)(k))
    calls = (ToolCall(tool="read_sensor", args={"sensor": s}) for s in SENSORS)
    return session, [r for c in calls for r in session.act("inspector", c) if isinstance(r, ToolAnswered)]


def test_numbers_that_come_as_text_are_coerced_and_recorded() -> None:
    """The agent sees 25.3 where the gateway said "25.3", and the record keeps what it said."""
    _, answers = read_all(make(offline=0, mistyped=1), 3)
    for answer in answers:
        assert answer.ok
        assert isinstance(answer.raw["value"], str)
        assert answer.value == {**answer.raw, "value": float(answer.raw["value"])}


def test_well_typed_numbers_are_left_alone() -> None:
    """Nothing is recorded as raw where nothing was coerced."""
    _, answers = read_all(make(offline=0, mistyped=0), 3)
    assert all(a.ok and a.raw is None and isinstance(a.value["value"], float) for a in answers)


def test_typing_changes_nothing_that_is_seen() -> None:
    """What the inspector reads is the same, whichever way the number came."""
    texts = [read_all(make(offline=0, mistyped=m), 5)[0].observe("inspector").text for m in (0.0, 1.0)]
    assert texts[0] == texts[1]


def test_a_sensor_that_is_off_line_answers_with_an_error() -> None:
    """It names the sensor, is billed and counted, and does not come back when asked again."""
    session, answers = read_all(make(offline=1), 3)
    assert [a.fault.code for a in answers if a.fault] == ["tool_failed"] * len(SENSORS)
    assert all(s in a.fault.message for s, a in zip(SENSORS, answers, strict=True) if a.fault)
    assert session.invalid["inspector"] == len(SENSORS)
    assert sum(a.cost_usd for a in answers) == len(SENSORS) * plant().cost_usd.read_sensor
    assert session.observe("inspector").mask == (*[False] * len(SENSORS), True)


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_reading_is_told_against_its_limits(sensor: Sensor) -> None:
    """The value lies where the status says, by the limits that ``thresholds`` gives, in the same unit."""
    team = make(offline=0, mistyped=0)
    for k in range(60):
        session = Session(team, Generated(team, "train", 1)(k))
        call = ToolCall(tool="read_sensor", args={"sensor": sensor})
        reading = next(r for r in session.act("inspector", call) if isinstance(r, ToolAnswered)).value
        session.act("inspector", ToolCall(tool=HAND_OVER))
        call = ToolCall(tool="thresholds", args={"sensor": sensor})
        limits = next(r for r in session.act("analyst", call) if isinstance(r, ToolAnswered)).value
        over = (reading["value"] >= limits["warning"]) + (reading["value"] >= limits["alarm"])
        assert reading["status"] == LEVELS[over]
        assert reading["unit"] == limits["unit"]


def test_an_unknown_sensor_is_refused_to_the_agent() -> None:
    """A structured error names the place; nothing raises."""
    session = Session(TEAM, Generated(TEAM, "train", 1)(0))
    found = session.act("inspector", '{"tool": "read_sensor", "args": {"sensor": "humidity"}}')
    answer = next(r for r in found if isinstance(r, ToolAnswered))
    assert answer.fault is not None
    assert (answer.fault.code, answer.fault.path) == ("bad_arguments", "$.sensor")


def test_what_is_shown_first_is_independent_of_the_fault() -> None:
    """Kind of machine and occasion come equally often with every fault."""
    cases = [Generated(TEAM, "train", 1)(k) for k in range(4000)]
    for key in ("kind", "occasion"):
        for value in {c.visible[key] for c in cases}:
            share = np.mean([c.visible[key] == value for c in cases])
            for fault in FAULTS:
                shown = [c.visible[key] == value for c in cases if c.truth["fault"] == fault]
                assert abs(np.mean(shown) - share) < 4.5 * (share * (1 - share) / len(shown)) ** 0.5


def test_the_plant_is_well_formed() -> None:
    """Probabilities sum to 1, limits rise, and every fault has its own remedy."""
    model = plant()
    assert sum(model.faults.values()) == pytest.approx(1)
    for sensor in model.sensors.values():
        assert all(sum(p) == pytest.approx(1) for table in (sensor.level, sensor.trend) for p in table.values())
    assert all(list(x) == sorted(x) for limits in model.machines.values() for x in limits.values())
    assert len({model.remedy(f) for f in FAULTS}) == len(FAULTS)


def test_the_remedy_is_a_success() -> None:
    """Whatever was read, the work order that fits the fault ends the case well, any other one does not."""
    for k in range(20):
        case = Generated(TEAM, "eval", 2)(k)
        for order in ORDERS:
            session = Session(TEAM, case)
            session.act("inspector", ToolCall(tool=HAND_OVER))
            session.act("analyst", ToolCall(tool=HAND_OVER))
            session.act("planner", ToolCall(tool="work_order", args={"order": order, "priority": "urgent"}))
            assert session.ended
            assert session.success is (order == plant().remedy(case.truth["fault"]))


def test_the_random_baseline_is_exact() -> None:
    """The computed return of chance lies in the 95% interval (taken half as wide again) of 1,500 played cases."""
    exact = TEAM.baselines["random"].exact
    assert exact is not None
    low, high = interval(returns(TEAM, None, WEIGHTS, 1500))
    assert low - (high - low) / 4 < exact() < high + (high - low) / 4


def test_the_optimum_is_exact_on_a_small_plant() -> None:
    """Backward induction over tables finds what plain recursion over everything that can be known finds."""
    full = plant()
    small = full.model_copy(update={"sensors": {s: full.sensors[s] for s in ("vibration", "temperature")}})
    assert optimum(small, offline=0.2) == pytest.approx(by_recursion(small, 0.2), abs=1e-9)


def test_the_optimum_is_above_the_expert_and_below_knowing_all() -> None:
    """The baselines stand in their order."""
    exact = TEAM.baselines["optimal"].exact
    assert exact is not None
    model = plant()
    knowing = sum(
        share * max(model.payoff(o, p, f) - model.downtime(o, p) for o in ORDERS for p in PRIORITIES)
        for f, share in model.faults.items()
    )
    assert interval(returns(TEAM, TEAM.baselines["expert"].policies, WEIGHTS, 500))[1] < exact() < knowing


def by_recursion(model: Plant, offline: float) -> float:
    """Expected return of the best team, by going through all that can happen, with normalized probabilities."""
    sensors = list(model.sensors)

    def belief(levels: tuple[int | None, ...], trends: tuple[int | None, ...]) -> dict[str, float]:
        weights = dict(model.faults)
        for fault, (i, sensor) in product(FAULTS, enumerate(sensors)):
            level, trend = levels[i], trends[i]
            if level is not None and level >= 0:
                weights[fault] *= model.sensors[sensor].level[fault][level]
            if trend is not None:
                weights[fault] *= model.sensors[sensor].trend[fault][trend]
        total = sum(weights.values())
        return {f: w / total for f, w in weights.items()}

    def with_(known: tuple[int | None, ...], i: int, value: int) -> tuple[int | None, ...]:
        return (*known[:i], value, *known[i + 1 :])

    @cache
    def analyst(levels: tuple[int | None, ...], trends: tuple[int | None, ...]) -> float:
        now = belief(levels, trends)
        values = [
            sum(now[f] * (model.payoff(o, p, f) - model.downtime(o, p)) for f in FAULTS)
            for o in ORDERS
            for p in PRIORITIES
        ]
        for i in (i for i, t in enumerate(trends) if t is None):
            chances = [sum(now[f] * model.sensors[sensors[i]].trend[f][t] for f in FAULTS) for t in range(3)]
            after = sum(c * analyst(levels, with_(trends, i, t)) for t, c in enumerate(chances))
            values.append(after - model.cost_usd.history)
        return max(values)

    @cache
    def inspector(levels: tuple[int | None, ...]) -> float:
        nothing = (None,) * len(sensors)
        now, values = belief(levels, nothing), [analyst(levels, nothing)]
        for i in (i for i, x in enumerate(levels) if x is None):
            chances = [sum(now[f] * model.sensors[sensors[i]].level[f][x] for f in FAULTS) for x in range(3)]
            after = (1 - offline) * sum(c * inspector(with_(levels, i, x)) for x, c in enumerate(chances))
            values.append(after + offline * inspector(with_(levels, i, -1)) - model.cost_usd.read_sensor)
        return max(values)

    return inspector((None,) * len(sensors))
