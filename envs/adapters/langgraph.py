"""A LangGraph graph as a team.

    team = langgraph_team(graph, Beside(name="desk", succeeded=…, terms=…, generate=…, ends=("send_reply",)))

Taken over: nodes that ask a chat model are roles, their system prompts the briefs; the tools that are bound there are
the roles', and the graph's own tool nodes run them on the graph's state, with its reducers; edges say who is next. The
model's place is taken by the team's policies. How each node asks its model is seen by running it once on a case, up to
the moment in which it would ask: no model is called.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from envs.adapters.assembling import assembled
from envs.adapters.beside import MESSAGES, Beside, Scene, Seat
from envs.adapters.calling import read_json
from envs.adapters.graph_parts import Part, function_of, passing, runner, sequence, tool_nodes, used_inside
from envs.adapters.langchain import described, source_of
from envs.adapters.probing import Asked, asked
from runtime.errors import RepertoryError, TeamError
from runtime.records import Json
from runtime.types import Scenario, Team, Tool


class GraphToolFailed(RepertoryError):
    """A tool of the graph answered with an error."""


def langgraph_team(graph: Any, beside: Beside, states: Mapping[str, Mapping[str, Any]] | None = None) -> Team:
    """The team that a graph is.

    Args:
        graph: a ``StateGraph``, or what its ``compile()`` gives. ``scenario.visible`` is its input.
        beside: what the graph does not say.
        states: by node, what its state holds when it is reached, beside the input: for nodes that read what earlier
            ones have written.

    Raises:
        TeamError: the graph has something that a team has no place for; which node, and what to do.
    """
    builder: Any = getattr(graph, "builder", graph)
    if not all(hasattr(builder, part) for part in ("nodes", "edges", "branches", "state_schema")):
        raise TeamError(f"a graph is a StateGraph or what its compile() gives, not {type(graph).__name__}")
    found = _look(builder, beside, states or {})
    parts = [*used_inside(builder), *tool_nodes(builder)]  # a tool node of the graph's own comes before
    tools = {name: _tool(name, part) for part in parts for name in part.tools}
    world = partial(_scene, beside, builder, runner(sequence(builder, found.before)))
    return assembled(beside, found.seats, found.first, tools, world)


# -- what there is in the graph


@dataclass(frozen=True, slots=True)
class _Found:
    seats: Mapping[str, Seat]
    first: str
    before: tuple[str, ...]
    """Nodes without a model that come before the first role."""


def _look(builder: Any, beside: Beside, states: Mapping[str, Mapping[str, Any]]) -> _Found:
    from langgraph.graph import END, START

    goes = passing(builder)
    silent = {n for part in tool_nodes(builder) for n in part.nodes}
    opened = _opened(builder, beside.example())
    before = tuple(_before(builder, goes, silent, beside, opened))
    heard: dict[str, Asked] = {}
    for name in (n for n in builder.nodes if n not in silent and n not in before):
        heard[name] = _heard(builder, name, beside, {**opened, **states.get(name, {})})
    if not heard:
        raise TeamError(f"none of the nodes {', '.join(builder.nodes)} asks a chat model: there is nothing to decide")
    seats: dict[str, Seat] = {}
    for name, said in heard.items():
        nexts = set(_next(goes, name, silent))
        brief = said.system or _documented(builder, name)
        following = frozenset(nexts & set(heard)) - {name}
        seats[name] = Seat(name=name, brief=brief, tools=said.tools, following=following, may_end=END in nexts)
    first = _first(set(_next(goes, before[-1] if before else START, silent)) & set(heard))
    return _Found(seats, first, before)


def _first(found: set[str]) -> str:
    if len(found) != 1:
        raise TeamError(f"a case begins with {' and '.join(sorted(found)) or 'no role'}: in a team it begins with one")
    return found.pop()


def _next(goes: Mapping[str, frozenset[str]], node: str, silent: set[str]) -> Iterator[str]:
    """Where a case may go to from a node, through nodes that only run tools."""
    seen, waiting = {node}, [*goes.get(node, ())]
    while waiting:
        name = waiting.pop()
        if name not in silent:
            yield name
        elif name not in seen:
            waiting += goes.get(name, ())
        seen.add(name)


def _before(
    builder: Any, goes: Mapping[str, frozenset[str]], silent: set[str], beside: Beside, state: Mapping[str, Any]
) -> Iterator[str]:
    """The nodes without a model that a case goes through before the first role."""
    from langgraph.graph import START

    name, seen = START, set[str]()
    while len(goes.get(name, ())) == 1:
        (name,) = goes[name]
        if name not in builder.nodes or name in silent or name in seen:
            return
        if asked(sequence(builder, (name,)), state, _context(beside, builder, beside.example())) is not None:
            return
        seen.add(name)
        yield name


def _heard(builder: Any, name: str, beside: Beside, state: Mapping[str, Any]) -> Asked:
    """How a node asks its model. Raises TeamError where it asks none, or fails before."""
    context = _context(beside, builder, beside.example())
    try:
        found = asked(sequence(builder, (name,)), state, context)
    except Exception as error:
        raise TeamError(
            f"node {name} raised {type(error).__name__}: {error}, before it asked a model: give the state that it is "
            f"reached with, states={{{name!r}: {{…}}}}"
        ) from error
    if found is None:
        raise TeamError(
            f"node {name} asks no chat model of LangChain's: between roles nothing runs by itself; make it a tool, or "
            "part of the node before it"
        )
    return found


def _documented(builder: Any, name: str) -> str:
    """What a node's function says of itself: the brief of a role without a system prompt."""
    function = function_of(builder.nodes[name].runnable)
    return (getattr(function, "__doc__", None) or f"Do the part of {name}.").strip()


# -- what runs


def _opened(builder: Any, scenario: Scenario) -> dict[str, Any]:
    """The part of a case that is the graph's input. Raises TeamError where there is none."""
    given = {k: v for k, v in scenario.visible.items() if k in builder.channels}
    if not given:
        parts = ", ".join(builder.channels)
        raise TeamError(f"nothing in the case {scenario.id} is part of the graph's state: visible wants one of {parts}")
    return given


def _context(beside: Beside, builder: Any, scenario: Scenario) -> Any:
    return beside.context(scenario) if beside.context is not None and builder.context_schema is not None else None


def _scene(beside: Beside, builder: Any, begin: Callable[..., Any], scenario: Scenario) -> Scene:
    context = _context(beside, builder, scenario)
    state = begin(_opened(builder, scenario), _config(scenario), context=context)
    return Scene(scenario=scenario, succeeded=beside.succeeded, context=context, state=dict(state))


def _config(scenario: Scenario) -> dict[str, Any]:
    """What tools that take a ``RunnableConfig`` find there: the whole case, under ``configurable``."""
    return {"configurable": {"scenario": scenario}}


def _tool(name: str, part: Part) -> Tool:
    """A tool that the graph's own node runs, on the state."""
    given, invoke = part.tools[name], part.invoke

    def run(scene: Scene, **args: Json) -> Json:
        return _carried_out(scene, invoke, name, args)

    run.__wrapped__ = source_of(given)  # pyright: ignore[reportFunctionMemberAccess] what the hash of the source looks at
    return described(given, run)


def _carried_out(scene: Scene, invoke: Callable[..., Any], name: str, args: Mapping[str, Json]) -> Json:
    from langchain_core.messages import AIMessage, ToolMessage

    said = list(scene.state.get(MESSAGES, ()))
    call = AIMessage(content="", tool_calls=[{"name": name, "args": dict(args), "id": f"call-{len(said)}"}])
    after = invoke({**scene.state, MESSAGES: [*said, call]}, _config(scene.scenario), context=scene.context)
    scene.state = dict(after)
    last = after[MESSAGES][-1]
    if isinstance(last, ToolMessage) and last.status == "error":
        raise GraphToolFailed(str(last.content))
    return read_json(last.content)
