"""Answers in OpenAI's shape, whole or as a stream of events."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from serving.errors import ServingError
from serving.openai_api.asked import BadChat, Faulty, NoSuchModel, Piece

OVER = b"data: [DONE]\n\n"
KINDS = {401: "authentication_error", 403: "permission_error", 404: "invalid_request_error", 503: "overloaded_error"}
"""What errors are called there, by status."""
PATHS = ("/v1/models", "/v1/chat/")
"""Where answers have OpenAI's shape."""


def speaks_openai(path: str) -> bool:
    """Whether a path's answers have OpenAI's shape."""
    return path.startswith(PATHS)


def error_of(error: ServingError) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    usual = "server_error" if error.status >= 500 else "invalid_request_error"
    param = getattr(error, "param", "") or None
    told = {"message": error.message, "type": KINDS.get(error.status, usual), "param": param, "code": error.code}
    return {"error": told}


def problem_of(error: ServingError, path: str) -> dict[str, Any]:
    """An error in the shape that a path's clients expect."""
    return error_of(error) if speaks_openai(path) else {"error": {"code": error.code, "message": error.message}}


def refused(piece: Piece) -> ServingError:
    """The error that a version has told of."""
    code = piece.get("code", "failed")
    kind = {"failed": Faulty, "model_not_found": NoSuchModel}.get(code, BadChat)
    return kind(code, piece.get("text", ""), piece.get("param", ""))


@dataclass
class Told:
    """An answer that comes piece by piece."""

    id: str
    model: str
    created: int
    """Unix time, s."""
    prompt: int = 0
    """Tokens."""
    text: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    finish: str = "stop"
    tokens: int = 0

    def take(self, piece: Piece) -> dict[str, Any] | None:
        """Note a piece; what it adds to the message, for a stream."""
        match piece.get("kind"):
            case "begun":
                self.prompt = piece.get("tokens", 0)
                return {"role": "assistant", "content": ""}
            case "text":
                self.text += (more := piece.get("text", ""))
                return {"content": more}
            case "call":
                function = {"name": piece.get("name", ""), "arguments": piece.get("arguments", "{}")}
                call = {"id": f"call_{self.id[-24:]}_{len(self.calls)}", "type": "function", "function": function}
                self.calls.append(call)
                return {"tool_calls": [{"index": len(self.calls) - 1, **call}]}
            case "end":
                self.finish, self.tokens = piece.get("finish", "stop"), piece.get("tokens", 0)
                return None
            case _:
                raise refused(piece)

    @property
    def usage(self) -> dict[str, int]:
        """What it took (tokens)."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt + self.tokens,
        }

    def whole(self) -> dict[str, Any]:
        """The answer at once."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, "refusal": None}
        if self.calls:
            message["tool_calls"] = self.calls
        choice = {"index": 0, "message": message, "finish_reason": self.finish, "logprobs": None}
        return {**self._around("chat.completion"), "choices": [choice], "usage": self.usage}

    def part(self, delta: Mapping[str, Any] | None, *, usage: bool = False) -> dict[str, Any]:
        """One event of a stream; without a delta, the last one of the message."""
        finish = self.finish if delta is None else None
        choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish, "logprobs": None}
        return {**self._around("chat.completion.chunk"), "choices": [choice], **({"usage": None} if usage else {})}

    def counted(self) -> dict[str, Any]:
        """The event that tells what a stream took."""
        return {**self._around("chat.completion.chunk"), "choices": [], "usage": self.usage}

    def _around(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.id}", "object": kind, "created": self.created, "model": self.model}


async def collected(told: Told, pieces: AsyncIterator[Piece]) -> dict[str, Any]:
    """The whole answer. Raises ServingError where the version refuses."""
    async for piece in pieces:
        told.take(piece)
    return told.whole()


async def streamed(told: Told, first: Piece, pieces: AsyncIterator[Piece], usage: bool) -> AsyncGenerator[bytes]:
    """The answer as server-sent events; what goes wrong after the first is told in one."""
    try:
        yield _event(told.part(told.take(first), usage=usage))
        async for piece in pieces:
            yield _event(told.part(told.take(piece), usage=usage))
        if usage:
            yield _event(told.counted())
        yield OVER
    except ServingError as error:
        yield _event(error_of(error))


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
