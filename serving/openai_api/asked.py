"""A chat as a router asks a version for it, and what the version says: plain values that travel between processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from runtime.records import ToolCall
from serving.errors import ServingError


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """What an assistant called; what a tool's answer is the answer to."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that may be called."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """Of its arguments (JSON Schema)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """What a role is to go on with."""

    role: str
    messages: tuple[Message, ...]
    tools: tuple[Offered, ...] = ()
    must: bool = False
    """One of the tools is to be called, whatever the model would rather say."""
    temperature: float | None = None
    """None: as the team is served, greedily (0) or drawn (1)."""
    top_p: float = 1.0
    seed: int
    limit: int | None = None
    """Tokens of the answer, at most."""
    stop: tuple[str, ...] = ()


class Piece(TypedDict, total=False):
    """A part of the answer. First comes ``begun`` (or ``refused``), last ``end``."""

    kind: Literal["begun", "text", "call", "end", "refused"]
    tokens: int
    """``begun``: of the prompt; ``end``: of the answer."""
    text: str
    """``text``: what more was said; ``refused``: why."""
    name: str
    """``call``: the tool."""
    arguments: str
    """``call``: JSON."""
    finish: str
    """``end``: ``stop``, ``length`` or ``tool_calls``."""
    code: str
    """``refused``: the reason in a word."""
    param: str
    """``refused``: the key of the request that is wrong."""


class BadChat(ServingError):
    """A request that cannot be carried out as it is."""

    def __init__(self, code: str, message: str, param: str = "") -> None:
        super().__init__(code, message)
        self.param = param

    def __reduce__(self) -> tuple[type["BadChat"], tuple[str, str, str]]:
        return type(self), (self.code, self.message, self.param)


class NoSuchModel(BadChat):
    """There is no role of that name, or no language model plays it."""

    status = 404


class Faulty(BadChat):
    """The version raised."""

    status = 500
