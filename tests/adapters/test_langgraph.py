"""A LangGraph graph is a team: its nodes are the roles, its own nodes run its tools on its state, no model is asked."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime, tools_condition
from langgraph.types import Command

from assembly.sources import source_hash
from envs import Scene, from_langchain_tools, langgraph_team
from envs.check import check_team
from envs.session import Session
from runtime.errors import TeamError
from runtime.records import EpisodeEnded, ToolAnswered
from runtime.tools import tool
from runtime.types import Outside, Pipeline, Team
from tests.adapters.cases import ORDERS, beside, call, case, truly
from tests.adapters.desk_graph import CLERK, WRITER, Scripted, State, begun, graph, look_up, settle


def well(scene: Scene) -> bool:
    """Whether the last tool did what was right."""
    return f'"did": "{truly(scene)}"' in str(scene.state["messages"][-1].content)


def desk(**more: Any) -> tuple[Team, Scripted]:
    """The graph as a team, and the model that it would have asked."""
    model = Scripted()
    return langgraph_team(graph(model), beside(well, **{"ends": ("settle",), **more})), model


def test_nodes_are_roles_and_edges_the_order() -> None:
    """Names, briefs and tools as the nodes give them to their model, which is not asked for that."""
    team, model = desk()
    assert [(r.name, r.brief, r.tools) for r in team.roles] == [
        ("clerk", CLERK, ("look_up",)),
        ("writer", WRITER, ("settle",)),
    ]
    assert team.turns == Pipeline(order=("clerk", "writer"))
    assert team.tools["settle"].description.startswith("Settle the case")
    assert team.tools["settle"].input_schema["properties"]["how"]["enum"] == ["refund", "explain"]
    assert model.asked == []


def test_the_team_is_sound() -> None:
    """All that a team has to be, with the graph behind it."""
    team, model = desk()
    report = check_team(team, episodes=6)
    assert report.ok, str(report)
    assert model.asked == []


def test_what_happens_to_the_state_is_what_the_graph_does() -> None:
    """The graph itself, run with a model that calls these tools, ends in the same state as the team."""
    calls = [
        AIMessage("", tool_calls=[{"name": "look_up", "args": {"order": "A1"}, "id": "1"}]),
        AIMessage("over to you"),
        AIMessage("", tool_calls=[{"name": "settle", "args": {"how": "refund"}, "id": "2"}]),
    ]
    model = Scripted(answers=list(calls))
    there = graph(model).invoke(dict(case("A1").visible))
    team, _ = desk()
    session = Session(team, case("A1"))
    session.act("clerk", call("look_up"))
    session.act("clerk", call("hand_over"))
    session.act("writer", call("settle", how="refund"))
    here = session.world.state
    assert {k: v for k, v in here.items() if k != "messages"} == {k: v for k, v in there.items() if k != "messages"}
    said = [
        [(m.type, m.content) for m in of["messages"] if m.content and m.content != "over to you"]
        for of in (here, there)
    ]
    assert said[0] == said[1]
    assert session.success


def spoken(state: dict[str, Any]) -> list[tuple[str, str]]:
    """The messages of a state but for those of the model."""
    return [(m.type, m.content) for m in state["messages"] if m.type != "ai"]


def test_what_agents_see_is_the_case_the_answers_and_the_state() -> None:
    """Answers travel with the case; what a tool wrote into the state is seen by both."""
    team, _ = desk()
    session = Session(team, case("B2"))
    assert session.observe("clerk").text == 'case {"order": "B2", "messages": "Where is my order B2?"}'
    session.act("clerk", call("look_up"))
    session.act("clerk", call("hand_over"))
    lines = session.observe("writer").text.splitlines()
    assert lines[1:] == ['[clerk] look_up "B2 is on its way"', 'world {"status": "on its way"}']
    session.act("writer", call("settle", how="explain"))
    answer = next(r for r in session.records if isinstance(r, ToolAnswered) and r.tool == "settle")
    assert answer.value == {"did": "explain", "order": "B2", "for": "on its way"}


def test_a_tool_that_fails_is_a_fault() -> None:
    """Also where the graph's node would tell the model of it in words."""
    team, _ = desk()
    session = Session(team, case("Z9"))
    session.act("clerk", call("look_up"))
    answer = next(r for r in session.records if isinstance(r, ToolAnswered))
    assert (answer.ok, answer.fault and answer.fault.code) == (False, "tool_failed")
    assert "there is no order Z9" in (answer.fault.message if answer.fault else "")


def test_episodes_share_nothing() -> None:
    """Each has a state of its own."""
    team, _ = desk()
    first, second = (Session(team, case(order)) for order in ("A1", "B2"))
    first.act("clerk", call("look_up"))
    assert "status" not in second.world.state
    assert len(second.world.state["messages"]) == 1


def test_a_tool_is_ours_where_one_is_given() -> None:
    """A simulation takes the place of the graph's tool for the same role; what it acts on is the scene."""

    def look_up(world: Scene) -> str:
        """Look the order up, in a book of this test's."""
        return f"{world.scenario.visible['order']} is nowhere"

    team, _ = desk(tools={"look_up": tool(look_up)}, filled={}, outside=("settle",), cost_usd={"settle": 0.5})
    session = Session(team, case("A1"))
    session.act("clerk", call("look_up"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == "A1 is nowhere"
    assert (team.tools["settle"].outside, team.tools["settle"].cost_usd) == (Outside(), 0.5)


def test_its_source_is_that_of_the_graphs_functions() -> None:
    """A version is bound to what its tools do: two graphs whose functions differ have two hashes."""
    hashes = {source_hash(desk()[0]), source_hash(desk()[0])}
    assert len(hashes) == 1
    made = begun(Scripted())
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: END})
    made.add_edge("look", "clerk")
    made.nodes.pop("writer")
    made.nodes.pop("act")

    @langchain_tool("look_up")
    def another(order: str) -> str:
        """Look up where an order is."""
        return "nobody knows"

    made.nodes.pop("look")
    made.add_node("look", ToolNode([another]))
    hashes.add(source_hash(langgraph_team(made, beside(well, answers=("yes",)))))
    assert len(hashes) == 2
    hashes.add(source_hash(langgraph_team(looking(look_up), beside(well, answers=("yes",)))))
    assert len(hashes) == 3, "the same tools by name, of another function"


def looking(tool: Any) -> Any:
    """The clerk alone, with one tool in the tool node."""
    made = begun(Scripted())
    for name in ("writer", "act", "look"):
        made.nodes.pop(name)
    made.add_node("look", ToolNode([tool]))
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: END})
    made.add_edge("look", "clerk")
    return made


def test_a_last_word_ends_a_case_where_no_tool_does() -> None:
    """A role that may end the graph answers, with one of the candidates or, where it writes, with any text."""
    made = begun(Scripted())
    made.nodes.pop("act")
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: "writer"})
    made.add_edge("look", "clerk")
    made.add_edge("writer", END)
    team = langgraph_team(
        made,
        beside(lambda s: s.answer == truly(s), answers=("refund", "explain"), tools={"settle": tool(weigh)}),
    )
    assert team.roles[1].tools == ("settle", "answer")
    session = Session(team, case("A1"))
    session.act("clerk", call("hand_over"))
    session.act("writer", call("answer", text="refund"))
    (end,) = (r for r in session.records if isinstance(r, EpisodeEnded))
    assert (end.outcome["answer"], end.success) == ("refund", True)


def weigh(world: Scene) -> str:
    """Weigh what speaks for either."""
    return "even"


# -- other shapes of graphs


def test_an_asynchronous_graph_and_tool() -> None:
    """Nodes and tools that are coroutines only, as those of an MCP adapter."""
    model = Scripted()

    @langchain_tool
    async def look_far(order: str) -> str:
        """Look up where an order is, far away."""
        return f"{order} is far"

    async def scout(state: MessagesState) -> dict[str, Any]:
        prompt = [SystemMessage("Look."), *state["messages"]]
        return {"messages": [await model.bind_tools([look_far]).ainvoke(prompt)]}

    made: Any = StateGraph(MessagesState)
    made.add_node("scout", scout)
    made.add_node("tools", ToolNode([look_far]))
    made.add_edge(START, "scout")
    made.add_conditional_edges("scout", tools_condition)
    made.add_edge("tools", "scout")
    given = beside(lambda s: True, answers=("found",), filled={"look_far": {"order": "order"}})
    team = langgraph_team(made.compile(), given)
    assert team.roles[0].brief == "Look."
    session = Session(team, case("A1"))
    session.act("scout", call("look_far"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == "A1 is far"
    assert from_langchain_tools([look_far])["look_far"].run(None, order="B2") == "B2 is far"


def test_a_graph_as_a_node_is_one_role() -> None:
    """An agent that is a graph itself, with its tools inside."""
    model = Scripted()
    inner = begun(model)
    inner.nodes.pop("writer")
    inner.nodes.pop("act")
    inner.add_edge(START, "clerk")
    inner.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: END})
    inner.add_edge("look", "clerk")
    outer: Any = StateGraph(State)
    outer.add_node("office", inner.compile())
    outer.add_edge(START, "office")
    outer.add_edge("office", END)
    team = langgraph_team(outer.compile(), beside(lambda s: True, answers=("done",)))
    assert [(r.name, r.brief, r.tools) for r in team.roles] == [("office", CLERK, ("look_up", "answer"))]
    session = Session(team, case("C3"))
    session.act("office", call("look_up"))
    assert session.world.state["status"] == "delivered"


def test_agents_inside_of_node_functions() -> None:
    """As published examples have them: the graph in the node's function runs the tools, and is found there."""
    model = Scripted()
    inner = begun(model)
    inner.nodes.pop("writer")
    inner.nodes.pop("act")
    inner.add_edge(START, "clerk")
    inner.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: END})
    inner.add_edge("look", "clerk")
    office = inner.compile()
    own = [settle]

    def first(state: State) -> Command[Literal["second"]]:
        return Command(goto="second", update=office.invoke(state))

    def second(state: State) -> dict[str, Any]:
        return {"messages": [model.bind_tools(own).invoke([SystemMessage("Settle."), *state["messages"]])]}

    made: Any = StateGraph(State)
    made.add_node("first", first)
    made.add_node("second", second)
    made.add_edge(START, "first")
    made.add_edge("second", END)
    team = langgraph_team(made.compile(), beside(well, ends=("settle",)))
    assert [(r.name, r.brief, r.tools) for r in team.roles] == [
        ("first", CLERK, ("look_up",)),
        ("second", "Settle.", ("settle",)),
    ]
    session = Session(team, case("A1"))
    for agent, step in (("first", "look_up"), ("first", "hand_over")):
        session.act(agent, call(step))
    session.act("second", call("settle", how="refund"))
    assert session.success
    assert session.world.state["status"] == "lost"
    assert model.asked == []


def test_what_runs_before_the_first_role_runs_when_a_case_opens() -> None:
    """Nodes without a model, on the state, in their order."""
    made = begun(Scripted())
    made.add_node("prepare", lambda state: {"status": f"asked for {state['order']}"})
    made.add_edge(START, "prepare")
    made.add_edge("prepare", "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: "writer"})
    made.add_edge("look", "clerk")
    made.add_conditional_edges("writer", tools_condition, {"tools": "act", END: END})
    made.add_edge("act", END)
    team = langgraph_team(made, beside(well, ends=("settle",)))
    assert team.turns.order == ("clerk", "writer")
    assert Session(team, case("A1")).observe("clerk").text.endswith('world {"status": "asked for A1"}')


def test_what_runs_before_the_first_role_may_be_asynchronous() -> None:
    """It is awaited when a case opens, alone or in a graph within the graph."""

    async def prepare(state: State) -> dict[str, Any]:
        return {"status": f"asked for {state['order']}"}

    inner: Any = StateGraph(State)
    inner.add_node("prepare", prepare)
    inner.add_edge(START, "prepare")
    inner.add_edge("prepare", END)
    for node in (prepare, inner.compile()):
        made = looking(look_up)
        made.edges.discard((START, "clerk"))
        made.add_node("prepare", node)
        made.add_edge(START, "prepare")
        made.add_edge("prepare", "clerk")
        team = langgraph_team(made, beside(well, answers=("yes",)))
        assert Session(team, case("A1")).observe("clerk").text.endswith('world {"status": "asked for A1"}')


def test_tools_find_the_case_and_the_context() -> None:
    """The whole case in a ``RunnableConfig``, truth included, and what ``context=`` made of it in the runtime."""

    @langchain_tool("look_up")
    def asks(order: str, config: RunnableConfig, runtime: ToolRuntime[Desk, State]) -> str:
        """Look up where an order is."""
        return f"{config.get('configurable', {})['scenario'].truth['how']} at {runtime.context.shop}"

    made: Any = StateGraph(State, context_schema=Desk)
    inner = looking(asks)
    for name in ("clerk", "look"):
        made.add_node(name, inner.nodes[name].runnable)
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: END})
    made.add_edge("look", "clerk")
    given = beside(well, answers=("yes",), context=lambda case: Desk(f"the shop of {case.visible['order']}"))
    session = Session(langgraph_team(made, given), case("A1"))
    session.act("clerk", call("look_up"))
    assert next(r.value for r in session.records if isinstance(r, ToolAnswered)) == "refund at the shop of A1"


@dataclass
class Desk:
    """A graph's context."""

    shop: str


def test_a_graph_that_goes_back_is_a_team_that_hands_back() -> None:
    """Where each role may return a case to the one before it."""
    made = begun(Scripted())
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: "writer"})
    made.add_edge("look", "clerk")

    def judged(state: State) -> Literal["act", "clerk", "__end__"]:
        return "clerk"

    made.add_conditional_edges("writer", judged)
    made.add_edge("act", END)
    team = langgraph_team(made, beside(well, ends=("settle",)))
    assert team.turns == Pipeline(order=("clerk", "writer"), hand_back=True)
    session = Session(team, case("A1"))
    session.act("clerk", call("hand_over"))
    session.act("writer", call("hand_back"))
    assert session.to_act == ("clerk",)


def test_what_a_node_says_where_it_goes_is_an_edge() -> None:
    """A node that returns ``Command(goto=…)``, by its return type."""
    made = begun(Scripted())
    model = Scripted()

    def clerk(state: State) -> Command[Literal["writer"]]:
        said = model.bind_tools([look_up]).invoke([HumanMessage("?")])
        return Command(goto="writer", update={"messages": [said]})

    made.nodes.pop("clerk")
    made.add_node("clerk", clerk)
    made.add_edge(START, "clerk")
    made.add_conditional_edges("writer", tools_condition, {"tools": "act", END: END})
    made.add_edge("act", END)
    team = langgraph_team(made, beside(well, ends=("settle",)))
    assert team.turns.order == ("clerk", "writer")
    assert team.roles[0].brief == "Do the part of clerk."


# -- what has no place in a team


def branching(made: Any) -> None:
    def either(state: State) -> Literal["writer", "third"]:
        return "writer"

    made.add_node("third", made.nodes["writer"].runnable)
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", either)
    made.add_edge("writer", END)
    made.add_edge("third", END)


def nowhere_said(made: Any) -> None:
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", lambda state: "writer")


def side_by_side(made: Any) -> None:
    made.add_edge(START, "clerk")
    made.add_edge(START, "writer")


def waiting(made: Any) -> None:
    made.add_node("third", made.nodes["writer"].runnable)
    made.add_edge(START, "clerk")
    made.add_edge(["clerk", "writer"], "third")


def between(made: Any) -> None:
    made.add_node("polish", lambda state: {"status": "polished"})
    made.add_edge(START, "clerk")
    made.add_edge("clerk", "polish")
    made.add_edge("polish", "writer")
    made.add_edge("writer", END)


def unreached(made: Any) -> None:
    made.add_edge(START, "clerk")
    made.add_edge("clerk", END)


def failing(made: Any) -> None:
    model = Scripted()

    def reads(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["status"])]}

    made.nodes.pop("writer")
    made.add_node("writer", reads)
    made.add_edge(START, "clerk")
    made.add_edge("clerk", "writer")
    made.add_edge("writer", END)


def without_a_tool_node(made: Any) -> None:
    model, specs = Scripted(), [{"type": "function", "function": {"name": "settle", "parameters": {}}}]

    def writer(state: State) -> dict[str, Any]:
        return {"messages": [model.bind(tools=specs).invoke(state["messages"])]}

    made.nodes.pop("act")
    made.nodes.pop("writer")
    made.add_node("writer", writer)
    made.add_edge(START, "clerk")
    made.add_edge("clerk", "writer")
    made.add_edge("writer", END)


REFUSED = {
    "a branch": (branching, "clerk passes on to third or writer: a team is a line"),
    "a path nobody declares": (nowhere_said, "it is not said where the conditional edge of clerk leads"),
    "side by side": (side_by_side, "clerk and writer run side by side after __start__"),
    "a join": (waiting, "third waits for clerk and writer"),
    "a node between roles": (between, "node polish asks no chat model of LangChain's"),
    "a role nobody reaches": (unreached, "writer: no case that begins with clerk gets there"),
    "a node that needs more": (failing, "node writer raised KeyError: 'status', before it asked a model"),
    "a tool nobody runs": (
        without_a_tool_node,
        "writer is bound to the tool 'settle', and nothing is found that runs it",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_a_team_has_no_place_for_is_refused(shape: str) -> None:
    """By the node's name, with the reason."""
    edges, told = REFUSED[shape]
    made = begun(Scripted())
    edges(made)
    with pytest.raises(TeamError) as refused:
        langgraph_team(made, beside(well, answers=("yes", "no")))
    assert told in str(refused.value)


def test_one_line_of_a_branch_can_be_chosen() -> None:
    """And the state that a node needs can be given."""
    made = begun(Scripted())
    branching(made)
    team = langgraph_team(made, beside(well, answers=("yes", "no"), order=("clerk", "third")))
    assert team.turns.order == ("clerk", "third")
    made = begun(Scripted())
    failing(made)
    given = beside(well, answers=("yes", "no"))
    assert langgraph_team(made, given, states={"writer": {"status": "lost"}}).turns.order == ("clerk", "writer")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"filled": {}}, "tool look_up takes arguments that cannot be listed (order): give calls= or filled= for it"),
        ({"ends": ()}, "writer may end a case, and no tool of its does"),
        ({"ends": ("setle",)}, "ends names 'setle', which is no tool of these roles: look_up, settle"),
        ({"calls": {"settle": [{"how": "shout"}]}}, "calls: settle cannot be called with {'how': 'shout'}"),
        (
            {"sample": case("A1").__class__(id="x", visible={"a": 1}, truth={})},
            "nothing in the case x is part of the graph",
        ),
        ({"generate": None}, "without generate=, give a sample= case"),
        ({"order": ("clerk", "boss")}, "order: there is no boss; there are clerk, writer"),
        ({"order": ("writer", "clerk")}, "order: a case does not go from writer to clerk"),
    ],
)
def test_what_is_given_beside_must_fit(more: dict[str, Any], told: str) -> None:
    """What is missing, or named and not there, is told at once."""
    with pytest.raises(TeamError) as refused:
        desk(**more)
    assert told in str(refused.value)


def test_no_graph_at_all() -> None:
    """Something else is named for what it is; a graph without a model has nothing to decide."""
    with pytest.raises(TeamError, match="not int"):
        langgraph_team(3, beside(well))
    made: Any = StateGraph(State)
    made.add_node("only", lambda state: {})
    made.add_edge(START, "only")
    made.add_edge("only", END)
    with pytest.raises(TeamError, match="none of the nodes only asks a chat model"):
        langgraph_team(made, beside(well))


def test_listed_calls_are_the_candidates() -> None:
    """For arguments that no schema lists."""
    calls = {"look_up": [{"order": order} for order in ORDERS]}
    team, _ = desk(filled={}, calls=calls)
    assert [dict(c.args)["order"] for c in team.roles[0].calls or ()] == list(ORDERS)


@langchain_tool
def tell(state: Annotated[dict[str, Any], InjectedState], text: str) -> str:
    """Say something."""
    return text


def test_what_is_injected_is_no_argument() -> None:
    """An agent gives what the schema asks for, and no more."""
    assert list(from_langchain_tools([tell])["tell"].input_schema["properties"]) == ["text"]
    assert "state" not in desk()[0].tools["settle"].input_schema["properties"]
    assert settle.name == "settle"
