"""A LangGraph graph as people write them: a clerk who looks orders up, and a writer who refunds or explains."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import InjectedToolCallId, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command
from pydantic import Field

from tests.adapters.cases import ORDERS

CLERK, WRITER = "Find out where the order is, then pass on.", "Settle the case."


class Scripted(BaseChatModel):
    """A model that answers from a list, and remembers what it was asked."""

    answers: list[AIMessage] = Field(default_factory=list)
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **more)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


class State(MessagesState):
    """What the graph knows."""

    order: str
    status: str


@tool
def look_up(order: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Look up where an order is."""
    if order not in ORDERS:
        raise ValueError(f"there is no order {order}")
    told = ToolMessage(f"{order} is {ORDERS[order]}", tool_call_id=tool_call_id)
    return Command(update={"status": ORDERS[order], "messages": [told]})


@tool
def settle(how: Literal["refund", "explain"], state: Annotated[dict[str, Any], InjectedState]) -> dict[str, str]:
    """Settle the case: refund the order, or explain where it is."""
    return {"did": how, "order": state["order"], "for": state.get("status", "unknown")}


def nodes(model: BaseChatModel) -> dict[str, Any]:
    """The nodes that ask the model."""

    def clerk(state: State) -> dict[str, Any]:
        """Looks orders up."""
        return {"messages": [model.bind_tools([look_up]).invoke([SystemMessage(CLERK), *state["messages"]])]}

    def writer(state: State) -> dict[str, Any]:
        """Settles cases."""
        return {"messages": [model.bind_tools([settle]).invoke([SystemMessage(WRITER), *state["messages"]])]}

    return {"clerk": clerk, "writer": writer}


def begun(model: BaseChatModel) -> Any:
    """The graph with its nodes, but for the edges."""
    made: Any = StateGraph(State)
    for name, node in nodes(model).items():
        made.add_node(name, node)
    made.add_node("look", ToolNode([look_up], handle_tool_errors=True))
    made.add_node("act", ToolNode([settle]))
    return made


def graph(model: BaseChatModel) -> Any:
    """The graph, compiled."""
    made = begun(model)
    made.add_edge(START, "clerk")
    made.add_conditional_edges("clerk", tools_condition, {"tools": "look", END: "writer"})
    made.add_edge("look", "clerk")
    made.add_conditional_edges("writer", tools_condition, {"tools": "act", END: END})
    made.add_edge("act", END)
    return made.compile()
