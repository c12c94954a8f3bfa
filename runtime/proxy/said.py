"""What was answered: a chat completion, whole or as a stream of events, read from the bytes that went through."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from runtime.proxy.asked import Called, Spoken, called_of, read, text_of

DATA, OVER = "data:", "[DONE]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """An answer that came to its end."""

    text: str
    calls: tuple[Called, ...]
    finish: str
    """``stop``, ``tool_calls``, ``length`` and so on."""
    tokens: tuple[int, int] | None = None
    """In and out, as reported; None: they were not."""

    def spoken(self) -> Spoken:
        """The message that the program will send back with its next question."""
        return Spoken("assistant", self.text, self.calls)


@dataclass
class _Growing:
    """A call whose arguments come piece by piece."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def whole(self) -> Called:
        return called_of({"id": self.id, "function": {"name": self.name, "arguments": self.arguments}})


@dataclass
class _Stream:
    text: str = ""
    calls: dict[int, _Growing] = field(default_factory=dict[int, _Growing])
    finish: str = ""
    tokens: tuple[int, int] | None = None

    def take(self, chunk: Mapping[str, Any]) -> None:
        self.tokens = _tokens(chunk) or self.tokens
        choice = _first(chunk)
        if choice is None:
            return
        self.finish = str(choice.get("finish_reason") or self.finish)
        delta: dict[str, Any] = choice.get("delta") or {}
        self.text += text_of(delta.get("content"))
        for place, part in enumerate(delta.get("tool_calls") or ()):
            self._grow(part, place)

    def _grow(self, part: Mapping[str, Any], place: int) -> None:
        call = self.calls.setdefault(int(part.get("index", place)), _Growing())
        function: dict[str, Any] = part.get("function") or {}
        call.id = part.get("id") or call.id
        call.name = function.get("name") or call.name
        call.arguments += function.get("arguments") or ""


def said_of(body: bytes, kind: str) -> Said | None:
    """The answer in a body of that content type; None where it is none, or broke off before its end.

    Of several choices the first: a program that asks for more looks for itself which it takes.
    """
    try:
        return _streamed(body) if kind.startswith("text/event-stream") else _whole(read(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _streamed(body: bytes) -> Said | None:
    stream = _Stream()
    for data in _events(body):
        if data != OVER:
            stream.take(read(data.encode()))
    if not stream.finish:
        return None
    calls = tuple(call.whole() for _, call in sorted(stream.calls.items()))
    return Said(text=stream.text, calls=calls, finish=stream.finish, tokens=stream.tokens)


def _events(body: bytes) -> Iterator[str]:
    for line in body.decode("utf-8", "replace").split("\n"):
        if line.startswith(DATA):
            yield line.removeprefix(DATA).strip()


def _whole(data: Any) -> Said | None:
    choice = _first(data)
    message: Any = None if choice is None else choice.get("message")
    if choice is None or not isinstance(message, dict):
        return None
    said = cast("dict[str, Any]", message)
    calls = tuple(called_of(c) for c in said.get("tool_calls") or ())
    finish = str(choice.get("finish_reason") or "stop")
    return Said(text=text_of(said.get("content")), calls=calls, finish=finish, tokens=_tokens(data))


def _first(data: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = [c for c in data.get("choices") or () if c.get("index", 0) == 0]
    return choices[0] if choices else None


def _tokens(data: Mapping[str, Any]) -> tuple[int, int] | None:
    used: Any = data.get("usage")
    if not isinstance(used, dict):
        return None
    counts = cast("dict[str, Any]", used)
    return int(counts["prompt_tokens"]), int(counts["completion_tokens"])
