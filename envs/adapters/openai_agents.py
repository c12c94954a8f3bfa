"""Agents of the OpenAI Agents SDK as a team.

    team = openai_agents_team(triage, Beside(name="desk", succeeded=…, terms=…, generate=…, answers=("yes", "no")))

Taken over: agents are roles, their instructions the briefs; function tools and MCP servers' tools are the roles' tools,
run as the SDK runs them; handoffs say who is next. The model's place is taken by the team's policies. Where an agent
would answer without calling a tool, which ends a run there, a role calls ``answer``.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from envs.adapters.assembling import assembled
from envs.adapters.beside import Beside, Scene, Seat
from envs.adapters.calling import LONGEST_S, called, closed, read_json
from runtime.errors import TeamError
from runtime.records import Json
from runtime.toolbox.mcp import Command, McpServer
from runtime.types import Scenario, Team, Tool


def openai_agents_team(first: Any, beside: Beside) -> Team:
    """The team of an agent and of all whom it hands over to, directly or not.

    Args:
        first: the ``agents.Agent`` that a run begins with. Instructions that are a function are asked once, for the
            sample case.
        beside: what the agents do not say. ``context`` makes what tools find in their ``RunContextWrapper``.

    Raises:
        TeamError: something of the agents has no place in a team; which, and what to do.
        ServiceUnavailable: an MCP server of theirs cannot be reached.
    """
    from agents import Agent

    if not isinstance(first, Agent):
        raise TeamError(f"an OpenAI agents team begins with an agents.Agent, not with {type(first).__name__}")
    agents = _reached(first)
    if problems := [text for agent in agents.values() for text in _without_place(agent, beside)]:
        raise TeamError(f"team {beside.name}:\n  " + "\n  ".join(problems))
    tools: dict[str, Tool] = {}
    seats: dict[str, Seat] = {}
    for name, agent in agents.items():
        own = {**_functions(agent), **_served(agent, beside)}
        for clash in (n for n in own if n in tools and own[n].description != tools[n].description):
            raise TeamError(f"two tools are called {clash!r}, and one of them is {agent.name}'s: rename one")
        tools = {**own, **tools}
        seats[name] = Seat(
            name=name,
            brief=_brief(agent, beside),
            tools=(*own, *(t.name for t in agent.tools if t.name in beside.tools and t.name not in own)),
            following=frozenset(seat_name(_target(agent, h)) for h in _handoffs(agent)),
            may_end=True,
        )
    return assembled(beside, seats, seat_name(first), tools, partial(_scene, beside))


def seat_name(agent: Any) -> str:
    """An agent's name as a role's: lower case, words joined by ``_``."""
    return re.sub(r"\W+", "_", agent.name.strip().lower()).strip("_") or "agent"


def _reached(first: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = [first]
    while waiting:
        agent = waiting.pop(0)
        name = seat_name(agent)
        if found.setdefault(name, agent) is not agent:
            raise TeamError(f"two agents are called {agent.name!r}: rename one")
        waiting += [t for t in (_target(agent, h) for h in _handoffs(agent)) if found.get(seat_name(t)) is not t]
    return found


def _handoffs(agent: Any) -> list[Any]:
    """An agent's handoffs but for those that are switched off."""
    return [h for h in agent.handoffs if getattr(h, "is_enabled", True) is not False]


def _target(agent: Any, to: Any) -> Any:
    """The agent that a handoff leads to."""
    from agents import Agent

    if isinstance(to, Agent):
        return cast("Any", to)
    reference: Any = getattr(to, "_agent_ref", None)
    found: Any = reference() if reference is not None else None
    if found is None:
        raise TeamError(f"{agent.name} hands over to {to.agent_name} by code of its own: use handoff(agent)")
    return found


def _without_place(agent: Any, beside: Beside) -> Iterator[str]:
    """What an agent has and a team has no place for."""
    if agent.input_guardrails or agent.output_guardrails:
        yield f"{agent.name} has guardrails, which no policy goes through: pay for what they forbid with a reward term"
    if agent.tool_use_behavior != "run_llm_again":
        yield f"{agent.name}: tool_use_behavior says when a run ends; in a team, ends= does: leave it at its default"
    yield from _unusable(agent, beside)
    for handoff in _handoffs(agent):
        if getattr(handoff, "input_json_schema", {}).get("properties"):
            yield f"{agent.name}'s handoff to {handoff.agent_name} carries arguments: roles pass on what they have seen"
        if callable(getattr(handoff, "is_enabled", True)):
            yield f"{agent.name}'s handoff to {handoff.agent_name} is there or not by code of its own: roles decide"


def _unusable(agent: Any, beside: Beside) -> Iterator[str]:
    """Tools of an agent that do not run here as they stand."""
    from agents import FunctionTool

    for tool in (t for t in agent.tools if t.name not in beside.tools and getattr(t, "is_enabled", True) is not False):
        if not isinstance(tool, FunctionTool):
            yield f"{agent.name}'s tool {tool.name} ({type(tool).__name__}) does not run here: give one in tools="
        elif tool.needs_approval is not False:
            yield f"{agent.name}'s tool {tool.name} asks a person for approval, who is not here: give one in tools="
        elif callable(tool.is_enabled):
            yield f"{agent.name}'s tool {tool.name} is there or not by code of its own: refuse in its function"
        elif getattr(tool, "_is_agent_tool", False):
            yield f"{agent.name}'s tool {tool.name} is an agent that asks a model: hand over to it, or give tools="
        elif tool.tool_input_guardrails or tool.tool_output_guardrails:
            yield f"{agent.name}'s tool {tool.name} has guardrails: put them into its function"


def _brief(agent: Any, beside: Beside) -> str:
    from agents import RunContextWrapper

    context = _context(beside, beside.example()) if callable(agent.instructions) else None
    said = called(agent.get_system_prompt, {"run_context": RunContextWrapper(context)})
    return (said or agent.handoff_description or f"Do the part of {agent.name}.").strip()


# -- tools


def _functions(agent: Any) -> dict[str, Tool]:
    from agents import FunctionTool

    found = [t for t in agent.tools if isinstance(t, FunctionTool) and t.is_enabled is not False]
    return {t.name: _function(t) for t in found}


def _function(tool: Any) -> Tool:
    function = getattr(tool, "__wrapped__", None)
    raising, limit_s = _raising(tool, function), tool.timeout_seconds or LONGEST_S

    def run(scene: Scene, **args: Json) -> Json:
        from agents.tool_context import ToolContext

        text = json.dumps(args)
        context: Any = ToolContext(scene.context, tool_name=tool.name, tool_call_id="call", tool_arguments=text)
        return read_json(called(partial(raising.on_invoke_tool, context, text), {}, limit_s))

    if function is not None:
        run.__wrapped__ = function  # pyright: ignore[reportFunctionMemberAccess] what the hash of the source looks at
    return Tool(
        name=tool.name,
        description=tool.description or tool.name,
        input_schema=closed(tool.params_json_schema),
        output_schema={},
        run=run,
    )


def _raising(tool: Any, function: Callable[..., Any] | None) -> Any:
    """The same tool, raising what its function raises, where the SDK would tell the model in words."""
    from agents import function_tool

    if function is None:
        return tool
    return function_tool(
        function,
        name_override=tool.name,
        description_override=tool.description,
        failure_error_function=None,
        strict_mode=tool.strict_json_schema,
    )


def _served(agent: Any, beside: Beside) -> dict[str, Tool]:
    """The tools of an agent's MCP servers, by a client of ours."""
    found: dict[str, Tool] = {}
    for server in agent.mcp_servers:
        found |= _client(agent, server).tools()
    return {n: t for n, t in found.items() if n not in beside.tools}


def _client(agent: Any, server: Any) -> McpServer:
    params: Any = getattr(server, "params", None)
    if getattr(server, "tool_filter", None) is None:
        if hasattr(params, "command"):
            return McpServer(Command(params.command, tuple(params.args), dict(params.env or {})))
        if "Streamable" in type(server).__name__ and not params.get("headers"):
            return McpServer(str(params["url"]))
    raise TeamError(
        f"{agent.name}'s MCP server {server.name} is reached in a way that is not taken over (a filter, headers, "
        "server-sent events): take it from the agent, and give its tools in tools=McpServer(…).tools()"
    )


# -- an episode


def _context(beside: Beside, scenario: Scenario) -> Any:
    return beside.context(scenario) if beside.context is not None else None


def _scene(beside: Beside, scenario: Scenario) -> Scene:
    return Scene(scenario=scenario, succeeded=beside.succeeded, context=_context(beside, scenario))
