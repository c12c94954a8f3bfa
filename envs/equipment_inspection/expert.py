"""The rules that a person would write for the team, by limits and trends, without any probability."""

from collections.abc import Mapping
from random import Random

from envs.equipment_inspection.plant import LEVELS, SENSORS, TRENDS, Order, Priority
from runtime.records import ToolCall
from runtime.types import HAND_OVER, Observation, ScriptedPolicy, Seen

FIRST = ("vibration", "temperature", "pressure_loss")
"""What is read on every machine; the rest only where one of these is above a limit."""


def _said(seen: Observation, tool: str) -> dict[str, str]:
    """What a tool said of each sensor: the level of a reading, the trend of a history."""
    field = "status" if tool == "read_sensor" else "trend"
    return {_sensor(s): s.data[field] for s in seen.seen if s.source == tool and s.kind in ("answer", "note")}


def _sensor(seen: Seen) -> str:
    return next(s for s in SENSORS if f'"{s}"' in seen.text)


def _tried(seen: Observation) -> int:
    return sum(s.source == "read_sensor" for s in seen.seen)


def inspector(seen: Observation, _chance: Random) -> ToolCall:
    """Read the first three sensors, and the others where one of them is above a limit."""
    done, levels = _tried(seen), _said(seen, "read_sensor")
    suspect = any(x != LEVELS[0] for x in levels.values()) or len(levels) < min(done, len(FIRST))
    if done < len(FIRST) or (suspect and done < len(SENSORS)):
        return ToolCall(tool="read_sensor", args={"sensor": SENSORS[done]})
    return ToolCall(tool=HAND_OVER)


def analyst(seen: Observation, _chance: Random) -> ToolCall:
    """Look up the history of each of the first three sensors that is above a limit."""
    levels, trends = _said(seen, "read_sensor"), _said(seen, "history")
    for sensor in FIRST:
        if levels.get(sensor, LEVELS[0]) != LEVELS[0] and sensor not in trends:
            return ToolCall(tool="history", args={"sensor": sensor})
    return ToolCall(tool=HAND_OVER)


def planner(seen: Observation, _chance: Random) -> ToolCall:
    """Order the work that the first matching rule names."""
    order, priority = _order(_said(seen, "read_sensor"), _said(seen, "history"))
    return ToolCall(tool="work_order", args={"order": order, "priority": priority})


def _order(levels: Mapping[str, str], trends: Mapping[str, str]) -> tuple[Order, Priority]:
    high = {s for s, level in levels.items() if level != LEVELS[0]}
    alarm = {s for s, level in levels.items() if level == LEVELS[2]}
    if not high:
        return "run_on", "routine"
    if len(high) == 1 and trends.get(next(iter(high))) == "jumped":
        return "recalibrate_sensor", "routine"
    rising = {s for s in high if trends.get(s, TRENDS[0]) != TRENDS[0]}
    if "pressure_loss" in alarm or ("pressure_loss" in rising and "vibration" not in high):
        return "reseal", "urgent"
    if "vibration" in high:
        return _shaking(high, trends)
    return ("clean_cooling", "urgent") if "temperature" in alarm | rising else ("run_on", "routine")


def _shaking(high: set[str], trends: Mapping[str, str]) -> tuple[Order, Priority]:
    if "oil_particles" in high and trends.get("vibration") == "rising":
        return "replace_bearing", "urgent"
    if "current" in high:
        return "align_shaft", "routine"
    return "balance_rotor", "routine"


POLICIES: Mapping[str, ScriptedPolicy] = {"inspector": inspector, "analyst": analyst, "planner": planner}
