"""What a program asks: the parts of a chat request that say who asks, about what, and with which tools."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, cast

from runtime.records import Json, ToolCall

BRIEFING = ("system", "developer")
"""Messages that are no part of what was said: each role has its own."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of the conversation, whatever it looked like on the wire."""

    role: str
    """``user``, ``assistant``, ``tool``, or whatever else was sent."""
    text: str
    calls: tuple["Called", ...] = ()
    """What an assistant called."""
    answers: str = ""
    """The id of the call that a tool's message answers."""

    @property
    def form(self) -> Json:
        """What makes it the same message again: not ids, nor how arguments were spaced."""
        return [self.role, self.text, [[c.call.tool, dict(c.call.args)] for c in self.calls]]


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call and the id that its answer will carry."""

    id: str
    call: ToolCall
    readable: bool = True
    """Whether its arguments were a JSON object."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A chat request."""

    model: str
    brief: str
    """The system messages, joined by lines."""
    spoken: tuple[Spoken, ...]
    tools: tuple[Mapping[str, Json], ...]
    """Functions that are offered: name, description, parameters."""
    stream: bool
    usage: bool
    """Whether a stream is to tell at its end what it took."""

    @property
    def offered(self) -> tuple[str, ...]:
        """The tools' names."""
        return tuple(str(t.get("name", "")) for t in self.tools)

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """For each beginning of the conversation, from the first message on, a name that only the same one has."""
        return tuple(chained("", self.spoken))

    @property
    def point(self) -> str:
        """The name of all that was said; empty: nothing was."""
        return self.beginnings[-1] if self.beginnings else ""


def chained(before: str, spoken: Sequence[Spoken]) -> list[str]:
    """Names of the beginnings that these messages make, after the one of that name."""
    names: list[str] = []
    for message in spoken:
        text = f"{before}\x1f{json.dumps(message.form, sort_keys=True, default=str)}"
        before = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        names.append(before)
    return names


def read(body: bytes) -> Json:
    """A body's JSON. Halves of characters, which JSON can say and nothing can keep, become question marks.

    Raises:
        ValueError: it is none.
    """
    data = json.loads(body)
    if b"\\ud" in body.lower():
        data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    return data


def asked_of(body: bytes) -> Asked | None:
    """The request in a body; None where it is none that is understood here."""
    try:
        data = read(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(cast("Any", data).get("messages"), list):
        return None
    fields = cast("dict[str, Any]", data)
    messages = _objects(fields["messages"])
    options = fields.get("stream_options")
    return Asked(
        model=str(fields.get("model", "")),
        brief="\n".join(text_of(m.get("content")) for m in messages if m.get("role") in BRIEFING),
        spoken=tuple(spoken_of(m) for m in messages if m.get("role") not in BRIEFING),
        tools=_functions(fields.get("tools")),
        stream=fields.get("stream") is True,
        usage=isinstance(options, dict) and cast("Any", options).get("include_usage") is True,
    )


def spoken_of(message: Mapping[str, Any]) -> Spoken:
    """A message."""
    return Spoken(
        str(message.get("role", "")),
        text_of(message.get("content")),
        tuple(map(called_of, _objects(message.get("tool_calls")))),
        str(message.get("tool_call_id") or ""),
    )


def called_of(call: Mapping[str, Any]) -> Called:
    """A tool call as an assistant's message holds it."""
    function: Any = call.get("function")
    fields = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
    try:
        args: Any = json.loads(fields.get("arguments") or "{}")
    except (ValueError, TypeError, RecursionError):
        args = None
    readable = isinstance(args, dict)
    made = ToolCall(tool=str(fields.get("name") or ""), args=cast("dict[str, Json]", args) if readable else {})
    return Called(str(call.get("id") or ""), made, readable)


def text_of(content: Any) -> str:
    """What a message says. Parts that are no text are named, and never kept: an image may be megabytes."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = _objects(cast("Any", content))
    return "\n".join(p["text"] if isinstance(p.get("text"), str) else f"[{p.get('type', 'part')}]" for p in parts)


def value_of(text: str) -> Json:
    """What a tool answered: JSON where it is some, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def case_of(spoken: Sequence[Spoken]) -> dict[str, Json]:
    """What the conversation is about: the first thing a user says, which may be JSON, or a line ``case {…}``."""
    first = next((m.text for m in spoken if m.role == "user"), "")
    found = value_of(first.strip().removeprefix("case "))
    return cast("dict[str, Json]", found) if isinstance(found, dict) else {"request": first}


def _functions(tools: Any) -> tuple[Mapping[str, Json], ...]:
    return tuple(_objects([t.get("function") for t in _objects(tools)]))


def _objects(values: Any) -> list[dict[str, Any]]:
    """The objects in a list; none where it is no list."""
    if not isinstance(values, list):
        return []
    return [cast("dict[str, Any]", v) for v in cast("list[Any]", values) if isinstance(v, dict)]
