"""LangChain's tools as tools of ours: schema, description and function as they are."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envs.adapters.calling import as_json, called, closed
from runtime.records import Json
from runtime.types import Tool


def from_langchain_tools(tools: Iterable[Any]) -> dict[str, Tool]:
    """LangChain tools by name, each called with its arguments alone.

    Args:
        tools: of type ``langchain_core.tools.BaseTool``; also those that only run asynchronously, as an MCP adapter's.
            What they are injected with (a graph's state, a store) they only have in a graph (``langgraph_team``).
    """
    return {t.name: described(t, _run(t)) for t in tools}


def described(tool: Any, run: Callable[..., Json]) -> Tool:
    """A LangChain tool's name, description and schema, with what carries it out."""
    schema: Any = tool.tool_call_schema
    arguments: Mapping[str, Any] = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema
    return Tool(
        name=tool.name,
        description=tool.description or tool.name,
        input_schema=closed(arguments),
        output_schema={},
        run=run,
    )


def source_of(tool: Any) -> Callable[..., Any]:
    """The function or class that a LangChain tool is made of, for the hash of a team's source."""
    kind: Any = tool.__class__
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or kind


def only_waits(tool: Any) -> bool:
    """Whether a LangChain tool only runs asynchronously."""
    return getattr(tool, "func", tool) is None


def _run(tool: Any) -> Callable[..., Json]:
    invoke = tool.ainvoke if only_waits(tool) else tool.invoke

    def run(_world: object, **args: Json) -> Json:
        return as_json(called(invoke, {"input": args}))

    run.__wrapped__ = source_of(tool)  # pyright: ignore[reportFunctionMemberAccess] what the hash of the source looks at
    return run
