"""Parts of a LangGraph graph: its tool nodes, where its edges lead, and some of its nodes as a graph of their own."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from envs.adapters.calling import called
from envs.adapters.langchain import only_waits
from runtime.errors import TeamError


@dataclass(frozen=True, slots=True)
class Part:
    """A tool node, as a graph of its own."""

    nodes: tuple[str, ...]
    """Its name in the graph; empty for one of a graph within the graph."""
    tools: Mapping[str, Any]
    """LangChain's tools by name."""
    invoke: Callable[..., Any]
    """``invoke(state, config, context=…)``: the state after it has run what the last message calls."""


def tool_nodes(builder: Any, *, inner: bool = False) -> list[Part]:
    """The nodes of a graph that only run tools, and those of the graphs in it."""
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.prebuilt import ToolNode

    found: list[Part] = []
    for name, node in builder.nodes.items():
        runnable: Any = node.runnable
        if isinstance(runnable, ToolNode):
            runs = runner(sequence(builder, (name,)))
            found.append(Part(() if inner else (name,), runnable.tools_by_name, runs))
        elif isinstance(runnable, CompiledStateGraph):
            found += tool_nodes(cast("Any", runnable).builder, inner=True)
    return found


def used_inside(builder: Any) -> list[Part]:
    """What runs tools inside of the nodes' functions: graphs and tools that these name, whoever holds them."""
    from langchain_core.tools import BaseTool
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.prebuilt import ToolNode

    found: list[Part] = []
    for value in (v for node in builder.nodes.values() for v in _named_in(node.runnable)):
        if isinstance(value, CompiledStateGraph):
            found += tool_nodes(cast("Any", value).builder, inner=True)
        held: list[Any] = list(cast("Any", value)) if isinstance(value, list | tuple) else [value]
        tools = [t for t in held if isinstance(t, BaseTool)]
        if tools:
            node: Any = ToolNode(tools)
            found.append(Part((), node.tools_by_name, runner(_lone(builder, node))))
    return found


def _named_in(runnable: Any) -> list[Any]:
    """What a node's function names; nothing where it is no plain function."""
    function = function_of(runnable)
    if not inspect.isfunction(function):
        return []
    found = inspect.getclosurevars(function)
    return [*found.nonlocals.values(), *found.globals.values()]


def function_of(runnable: Any) -> Any:
    """The function that a node is made of; None where it is made of something else."""
    return getattr(runnable, "func", None) or getattr(runnable, "afunc", None)


def _lone(builder: Any, node: Any) -> Any:
    """A compiled graph with the state of another and one node, which the other does not have."""
    from langgraph.graph import END, START, StateGraph

    made: Any = StateGraph(builder.state_schema, context_schema=builder.context_schema)
    made.add_node("tools", node)
    made.add_edge(START, "tools")
    made.add_edge("tools", END)
    return made.compile()


def runner(graph: Any) -> Callable[..., Any]:
    """How a compiled graph is run, ``(state, config, context=…)``: asynchronously where a part of it can do no else."""
    if not _waits(graph):
        return graph.invoke

    def runs(state: Any, config: Any, *, context: Any) -> Any:
        return called(graph.ainvoke, {"input": state, "config": config, "context": context})

    return runs


def _waits(runnable: Any) -> bool:
    """Whether a node, or one in the graph that it is, or one of the tools that it runs, only runs asynchronously."""
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.prebuilt import ToolNode

    if isinstance(runnable, CompiledStateGraph):
        return any(_waits(node.runnable) for node in cast("Any", runnable).builder.nodes.values())
    if isinstance(runnable, ToolNode):
        return any(only_waits(t) for t in runnable.tools_by_name.values())
    return getattr(runnable, "func", runnable) is None and getattr(runnable, "afunc", None) is not None


def sequence(builder: Any, names: Sequence[str]) -> Any:
    """A compiled graph with the state of another and some of its nodes, one after the other."""
    from langgraph.graph import END, START, StateGraph

    made: Any = StateGraph(builder.state_schema, context_schema=builder.context_schema)
    last = START
    for name in names or ("begin",):
        node = builder.nodes.get(name)
        made.add_node(name, node.runnable if node else _unchanged, **_input(node))
        made.add_edge(last, name)
        last = name
    made.add_edge(last, END)
    return made.compile()


def _input(node: Any) -> dict[str, Any]:
    return {} if node is None else {"input_schema": node.input_schema}


def _unchanged(_state: Any) -> dict[str, Any]:
    return {}


def passing(builder: Any) -> dict[str, frozenset[str]]:
    """Where a case may go to from each node, by its edges.

    Raises:
        TeamError: it is not said where an edge leads, or nodes wait for each other.
    """
    if builder.waiting_edges:
        starts, end = next(iter(builder.waiting_edges))
        raise TeamError(f"{end} waits for {' and '.join(starts)} to be done side by side: roles take turns, one by one")
    goes: dict[str, set[str]] = {}
    fixed: dict[str, set[str]] = {}
    for start, end in builder.edges:
        fixed.setdefault(start, set()).add(end)
    for start, ends in fixed.items():
        if len(ends) > 1:
            raise TeamError(
                f"{' and '.join(sorted(ends))} run side by side after {start}: roles take turns, one by one"
            )
        goes.setdefault(start, set()).update(ends)
    for start, branches in builder.branches.items():
        for branch in branches.values():
            if branch.ends is None:
                raise TeamError(
                    f"it is not said where the conditional edge of {start} leads: give add_conditional_edges a "
                    "path_map, or the path function a return type Literal[…]"
                )
            goes.setdefault(start, set()).update(branch.ends.values())
    for name, node in builder.nodes.items():
        goes.setdefault(name, set()).update(node.ends or ())
    return {name: frozenset(ends) for name, ends in goes.items()}
