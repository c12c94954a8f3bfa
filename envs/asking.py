"""Asking a tool: what it raises and what does not fit its contract is the agent's answer."""

from collections.abc import Callable
from typing import Any

from envs.contracts import contract_of
from runtime.records import Fault, Json, ToolAnswered, ToolCall
from runtime.toolbox.calling import carried_out
from runtime.tools import shortened
from runtime.types import Tool, World

Ask = Callable[[World, Tool, ToolCall, dict[str, Any]], ToolAnswered]
"""``asking(world, tool, call, stamp)``: carry out a call and return its answer as a record with that stamp."""


def _key(stamp: dict[str, Any]) -> str:
    """The decision's id: the same whenever it is carried out."""
    return f"{stamp['correlation_id']}/{stamp['agent']}/{stamp['turn']}"


def ask(world: World, tool: Tool, call: ToolCall, stamp: dict[str, Any]) -> ToolAnswered:
    """Run the tool here and now."""
    try:
        plain = tool.outside is None
        value = tool.run(world, **call.args) if plain else carried_out(tool, world, call.args, _key(stamp))
    except Exception as error:  # noqa: BLE001 - whatever the user's tool raises is the agent's answer
        fault = Fault(code="tool_failed", message=f"{type(error).__name__}: {error}")
        return ToolAnswered(**stamp, tool=tool.name, ok=False, fault=fault, cost_usd=tool.cost_usd)
    contract = contract_of(tool.output_schema)
    raw: Json = None
    wrong = contract.problem(value)
    if wrong and tool.loose:
        raw, value = value, contract.coerce(value)
        wrong = contract.problem(value)
    if wrong:
        fault = Fault(code="bad_answer", message=wrong[0], path=wrong[1])
        return ToolAnswered(**stamp, tool=tool.name, ok=False, fault=fault, cost_usd=tool.cost_usd, raw=raw)
    return ToolAnswered(**stamp, tool=tool.name, ok=True, value=shortened(value), cost_usd=tool.cost_usd, raw=raw)
