"""Agents of the OpenAI Agents SDK are a team: their tools run as the SDK runs them, and no model is asked."""

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    RunContextWrapper,
    Runner,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call

from envs import Scene, openai_agents_team
from envs.check import check_team
from envs.session import Session
from runtime.errors import TeamError
from runtime.records import EpisodeEnded, ToolAnswered
from runtime.tools import tool
from runtime.types import Pipeline, Scenario, Team
from tests.adapters.cases import ORDERS, beside, call, case, truly

set_tracing_disabled(True)
SERVER = Path(__file__).parents[1] / "toolbox" / "shop_server.py"


@dataclass
class Desk:
    """The context: what happens in one run."""

    order: str
    did: str = ""


@function_tool
def look_up(context: RunContextWrapper[Desk]) -> str:
    """Look up where the order is."""
    if context.context.order not in ORDERS:
        raise ValueError(f"there is no order {context.context.order}")
    return f"{context.context.order} is {ORDERS[context.context.order]}"


@function_tool
async def settle(context: RunContextWrapper[Desk], how: Literal["refund", "explain"]) -> dict[str, str]:
    """Settle the case.

    Args:
        how: what to do.
    """
    context.context.did = how
    return {"did": how}


def agents(model: Any = None, **more: Any) -> Agent[Any]:
    """Two agents, the first of which hands over to the second."""
    writer = Agent(name="Writer", instructions="Settle the case.", tools=[settle], model=model)
    return Agent(
        **{
            "name": "Order Clerk",
            "instructions": "Find out where the order is.",
            "tools": [look_up],
            "handoffs": [writer],
            "model": model,
            **more,
        }
    )


def well(scene: Scene) -> bool:
    return scene.context.did == truly(scene)


def given(**more: Any) -> Any:
    usual: dict[str, Any] = {
        "context": lambda case: Desk(case.visible["order"]),
        "answers": ("it is settled",),
        "filled": {},
        "ends": ("settle",),
    }
    return beside(well, **{**usual, **more})


def desk(first: Agent[Any] | None = None, **more: Any) -> Team:
    return openai_agents_team(first or agents(), given(**more))


def test_agents_are_roles_and_handoffs_the_order() -> None:
    """Names as ours are written, instructions as briefs, tools with the SDK's schemas; a last word where one ends."""
    team = desk()
    assert [(r.name, r.brief, r.tools) for r in team.roles] == [
        ("order_clerk", "Find out where the order is.", ("look_up", "answer")),
        ("writer", "Settle the case.", ("settle",)),
    ]
    assert team.turns == Pipeline(order=("order_clerk", "writer"))
    assert team.tools["settle"].input_schema["properties"]["how"]["enum"] == ["refund", "explain"]
    assert team.tools["look_up"].description == "Look up where the order is."


def test_the_team_is_sound() -> None:
    """All that a team has to be."""
    report = check_team(desk(), episodes=6)
    assert report.ok, str(report)


def test_what_tools_do_is_what_the_sdk_has_them_do() -> None:
    """A real run, with a scripted model that makes these calls, and the team end alike, and are answered alike."""
    model = ScriptedModel(
        [
            [function_call("look_up", "{}", call_id="1")],
            [function_call("transfer_to_writer", "{}", call_id="2")],
            [function_call("settle", '{"how": "refund"}', call_id="3")],
            [assistant_message("it is settled")],
        ]
    )
    context = Desk("A1")
    ran = asyncio.run(Runner.run(agents(model), "Where is my order A1?", context=context))
    there = [i.output for i in ran.new_items if i.type == "tool_call_output_item"]
    session = Session(desk(), case("A1"))
    session.act("order_clerk", call("look_up"))
    session.act("order_clerk", call("hand_over"))
    session.act("writer", call("settle", how="refund"))
    here = [r.value for r in session.records if isinstance(r, ToolAnswered)]
    assert here == [there[0], {"did": "refund"}]
    assert (context.did, session.world.context.did, session.success) == ("refund", "refund", True)


def test_a_tool_that_raises_is_a_fault() -> None:
    """Where the SDK would tell the model in words, and the answer would look like any other."""
    session = Session(desk(), case("Z9"))
    session.act("order_clerk", call("look_up"))
    (answer,) = (r for r in session.records if isinstance(r, ToolAnswered))
    assert answer.fault
    assert (answer.fault.code, "there is no order Z9" in answer.fault.message) == ("tool_failed", True)


def test_the_last_word_ends_a_case() -> None:
    """As a run ends with the text of whoever calls no tool."""
    session = Session(desk(), case("A1"))
    session.act("order_clerk", call("answer", text="it is settled"))
    (end,) = (r for r in session.records if isinstance(r, EpisodeEnded))
    assert (end.outcome["answer"], end.success) == ("it is settled", False)


def test_instructions_that_are_a_function_are_asked_with_the_sample_case() -> None:
    """Once, as the team is made."""

    async def told(context: RunContextWrapper[Desk], agent: Agent[Desk]) -> str:
        return f"{agent.name}, look for {context.context.order}."

    team = desk(agents(instructions=told), sample=case("C3"))
    assert team.role("order_clerk").brief == "Order Clerk, look for C3."


def test_a_handoff_back_is_a_hand_back() -> None:
    """Two agents that hand over to each other; ``handoff(…)`` says the same as an agent."""
    writer = Agent(name="writer", tools=[settle])
    clerk = Agent(name="clerk", instructions="Look.", tools=[look_up], handoffs=[handoff(writer)])
    writer.handoffs.append(clerk)
    team = desk(clerk)
    assert team.turns == Pipeline(order=("clerk", "writer"), hand_back=True)
    assert team.role("writer").brief == "Do the part of writer."


def test_tools_of_an_mcp_server_come_along() -> None:
    """A real server, spoken to by our client; the agent's own connection is not needed."""
    server = MCPServerStdio({"command": sys.executable, "args": [str(SERVER)]}, name="shop")
    articles = [{"article": "nut"}, {"article": "bolt"}]
    calls = {"price": articles, "order": articles, "slow": [{"seconds": 0}]}
    team = desk(Agent(name="clerk", instructions="Serve.", mcp_servers=[server]), ends=(), calls=calls, context=None)
    assert team.roles[0].tools == ("price", "order", "slow", "pid", "crash", "answer")
    session = Session(team, case("A1"))
    session.act("clerk", call("price", article="bolt"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == {"usd": 0.25}
    assert team.tools["order"].outside, "it acts outside the process, and is told the idempotency key"


def test_a_filter_or_headers_are_not_passed_over() -> None:
    """What would be reached otherwise than the agent reaches it is refused, and our own client's tools are taken."""
    server = MCPServerStdio({"command": "x"}, name="shop", tool_filter={"allowed_tool_names": ["price"]})
    first = Agent(name="clerk", instructions="Serve.", mcp_servers=[server])
    with pytest.raises(TeamError, match=r"clerk's MCP server shop is reached in a way that is not taken over"):
        desk(first)


def test_a_tool_is_ours_where_one_is_given() -> None:
    """Also in place of one that runs elsewhere."""

    def web_search(world: Scene) -> str:
        """Search for the order."""
        return str(world.context.order)

    first = Agent(name="clerk", instructions="Look.", tools=[WebSearchTool()])
    team = desk(first, tools={"web_search": tool(web_search)}, ends=())
    session = Session(team, case("A1"))
    session.act("clerk", call("web_search"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == "A1"


def a_guarded_agent() -> Agent[Any]:
    async def looks(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    return agents(input_guardrails=[InputGuardrail(guardrail_function=looks)])


def with_input() -> Agent[Any]:
    async def hears(context: RunContextWrapper[Any], why: Desk) -> None:
        return None

    return agents(handoffs=[handoff(Agent(name="writer"), on_handoff=hears, input_type=Desk)])


def two_ways() -> Agent[Any]:
    return agents(handoffs=[Agent(name="writer"), Agent(name="boss")])


def with_approval() -> Agent[Any]:
    return agents(tools=[replace(look_up, needs_approval=True)])


def sometimes(*_: Any) -> bool:
    return False


REFUSED = {
    "a tool that a person has to approve": (with_approval, "Order Clerk's tool look_up asks a person for approval"),
    "a tool that is there or not": (
        lambda: agents(tools=[replace(look_up, is_enabled=sometimes)]),
        "Order Clerk's tool look_up is there or not by code of its own",
    ),
    "a handoff that is there or not": (
        lambda: agents(handoffs=[handoff(Agent(name="writer"), is_enabled=sometimes)]),
        "Order Clerk's handoff to writer is there or not by code of its own",
    ),
    "a branch": (two_ways, "order_clerk passes on to boss or writer"),
    "guardrails": (a_guarded_agent, "Order Clerk has guardrails"),
    "a hosted tool": (
        lambda: agents(tools=[WebSearchTool()]),
        "Order Clerk's tool web_search (WebSearchTool) does not run",
    ),
    "an agent as a tool": (
        lambda: agents(tools=[Agent(name="boss").as_tool("ask_boss", "Ask.")]),
        "Order Clerk's tool ask_boss is an agent that asks a model",
    ),
    "a handoff with input": (with_input, "Order Clerk's handoff to writer carries arguments"),
    "another end": (lambda: agents(tool_use_behavior="stop_on_first_tool"), "tool_use_behavior says when a run ends"),
    "one name twice": (lambda: agents(handoffs=[Agent(name="order clerk")]), "two agents are called 'order clerk'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_team_has_no_place_for_is_refused(what: str) -> None:
    """By the agent's name, with the reason."""
    made, told = REFUSED[what]
    with pytest.raises(TeamError) as refused:
        desk(made())
    assert told in str(refused.value)


def test_one_line_of_a_branch_can_be_chosen() -> None:
    """By the names that the roles have."""
    team = desk(two_ways(), order=("order_clerk", "boss"), ends=())
    assert team.turns.order == ("order_clerk", "boss")


def test_what_is_switched_off_is_not_there() -> None:
    """Neither the tool nor the agent behind the handoff."""
    first = agents(
        tools=[look_up, replace(settle, is_enabled=False)],
        handoffs=[handoff(Agent(name="writer", tools=[settle]), is_enabled=False)],
    )
    team = desk(first, ends=())
    assert [(r.name, r.tools) for r in team.roles] == [("order_clerk", ("look_up", "answer"))]


def test_a_tools_time_limit_is_kept() -> None:
    """One that takes longer than the SDK would give it is a fault."""

    @function_tool(timeout=0.05)
    async def look_far(context: RunContextWrapper[Desk]) -> str:
        """Look up where the order is, far away."""
        await asyncio.Event().wait()
        return "never"

    session = Session(desk(agents(tools=[look_far])), case("A1"))
    session.act("order_clerk", call("look_far"))
    assert next(not r.ok for r in session.records if isinstance(r, ToolAnswered))


def test_something_else_is_named() -> None:
    """And so is a tool that was made by hand, and runs."""
    with pytest.raises(TeamError, match="not with str"):
        openai_agents_team("agent", given())

    async def invoke(context: Any, arguments: str) -> str:
        return '{"heard": ' + arguments + "}"

    by_hand = FunctionTool(name="hear", description="Hear.", params_json_schema={}, on_invoke_tool=invoke)
    team = desk(Agent(name="ear", instructions="Hear.", tools=[by_hand]), ends=(), generate=None, sample=case("A1"))
    session = Session(team, Scenario(id="x", visible={"order": "A1"}, truth={"how": "refund"}))
    session.act("ear", call("hear"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == {"heard": {}}
