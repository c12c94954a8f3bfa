"""What OpenAI's protocol answers with, for the schema."""

from typing import Literal

from runtime.records import Closed


class ModelShown(Closed):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(Closed):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[ModelShown]


class FunctionCalled(Closed):
    """A tool, and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCalled(Closed):
    """A call that the model makes."""

    id: str
    type: Literal["function"]
    function: FunctionCalled


class MessageSaid(Closed):
    """What the model says."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[ToolCalled] | None = None


class Choice(Closed):
    """One answer."""

    index: int
    message: MessageSaid
    finish_reason: Literal["stop", "length", "tool_calls"]
    logprobs: None = None


class Usage(Closed):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Closed):
    """The answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


class Fault(Closed):
    """What was wrong."""

    message: str
    type: str
    param: str | None
    """The key of the request that it is about."""
    code: str


class Faulted(Closed):
    """An answer that is an error."""

    error: Fault
