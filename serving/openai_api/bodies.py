"""Requests in OpenAI's shape: what is taken, what is let pass since it changes no answer, and nothing else."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runtime.records import Closed

MESSAGES, TOOLS, STOPS = 2048, 128, 4
"""How many there may be."""
NAME = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")


class Lenient(BaseModel):
    """What clients send back to us as we, or others, have sent it."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(Lenient):
    """A part of a message. Only text is understood."""

    type: Literal["text"]
    text: str


Content = str | list[TextPart]


class Briefing(Lenient):
    """What the model is told at the top."""

    role: Literal["system", "developer"]
    content: Content


class Asking(Lenient):
    """What somebody says to it."""

    role: Literal["user"]
    content: Content


class CalledFunction(Lenient):
    """The tool and its arguments, as JSON text."""

    name: Annotated[str, NAME]
    arguments: str = "{}"


class Called(Lenient):
    """A call that the model made."""

    id: Annotated[str, Field(max_length=200)]
    type: Literal["function"] = "function"
    function: CalledFunction


class Answered(Lenient):
    """What the model said before."""

    role: Literal["assistant"]
    content: Content | None = None
    tool_calls: list[Called] | None = None


class ToolSaid(Lenient):
    """What a call of it came to."""

    role: Literal["tool"]
    content: Content
    tool_call_id: Annotated[str, Field(max_length=200)]


Said = Annotated[Briefing | Asking | Answered | ToolSaid, Field(discriminator="role")]


class Function(Closed):
    """A tool."""

    name: Annotated[str, NAME]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema of its arguments, an object."""
    strict: bool | None = None


class Tool(Closed):
    """A tool that may be called."""

    type: Literal["function"]
    function: Function


class NamedFunction(Closed):
    """Its name."""

    name: str


class Named(Closed):
    """The tool that is to be called."""

    type: Literal["function"]
    function: NamedFunction


class Plain(Closed):
    """Text, as it comes."""

    type: Literal["text"]


class StreamOptions(Closed):
    """What a stream holds besides."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class Completion(Closed):
    """A chat that is to go on. Keys that would change the answer in a way that is not known here are refused."""

    model: Annotated[str, Field(max_length=400)]
    messages: Annotated[list[Said], Field(min_length=1, max_length=MESSAGES)]
    tools: Annotated[list[Tool], Field(max_length=TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | Named | None = None
    parallel_tool_calls: bool | None = None
    """Let pass: one call is made at a time."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: str | Annotated[list[str], Field(max_length=STOPS)] | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    response_format: Plain | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
