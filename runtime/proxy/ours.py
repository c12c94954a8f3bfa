"""A trained version in the place of the upstream: asked as in training, and heard as the program expects it.

The version gets what the role sees as one message, the text that is on record too, with the tools that the program
offers and the call that words stand for. So it decides from the prompt that it was trained on. Its call goes back as a
call; the one that words stand for goes back as words.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import httpx2

from runtime.llm.breaker import Breaker
from runtime.llm.shared import InMemory
from runtime.proxy.asked import Asked
from runtime.proxy.conversations import Conversation
from runtime.proxy.said import Said, said_of
from runtime.proxy.settings import RoleHint, Serve, provider_of
from runtime.proxy.telling import ANSWER, USER
from runtime.records import Json, ToolCall
from runtime.seams import now, uniform

CONNECT_S, ANSWER_S = 2.0, 60.0
"""How long the server of versions may take to accept a connection, and to answer (s): then the upstream is asked."""
CONNECTIONS = 16
"""Connections to it."""


class NoAnswer(Exception):
    """The version does not answer just now: why."""


class Ours:
    """The server of versions, for one role.

    Args:
        serve: where it is, and which role it plays.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve, self.share = serve, serve.ratio
        headers = {"authorization": f"Bearer {serve.key}"} if serve.key else {}
        timeout = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        self._client = httpx2.AsyncClient(headers=headers, timeout=timeout, limits=limits, trust_env=False)
        self._breaker = Breaker(serve.model, InMemory(), now, Random())

    @property
    def name(self) -> str:
        """Who answers, as PROVIDER/MODEL."""
        return f"{provider_of(self._serve.url)}/{self._serve.model}"

    def plays(self, found: Conversation, role: str) -> bool:
        """Whether it plays the role in a conversation: settled when the role first asks there, and kept."""
        if role != self._serve.role:
            return False
        if found.served is None:
            found.served = uniform("proxy", self._serve.model, found.id) < self.share
            found.version = self._serve.model if found.served else found.version
        return found.served

    async def ask(self, found: Conversation, asked: Asked, seen: str, hint: RoleHint) -> Said:
        """What the version says.

        Raises:
            NoAnswer: nothing in time, or an error.
        """
        leave = self._breaker.ask()
        if leave is None:
            raise NoAnswer("it failed too often just now")
        try:
            response = await self._client.post(
                f"{self._serve.url.rstrip('/')}/chat/completions",
                json=_question(self._serve.model, asked, seen, hint),
                headers={"x-session-id": found.id},
            )
        except httpx2.HTTPError as error:
            self._breaker.report(leave, ok=False)
            raise NoAnswer(type(error).__name__) from None
        said = said_of(response.content, "application/json") if response.status_code == 200 else None
        self._breaker.report(leave, ok=response.status_code < 500)
        if said is None:
            raise NoAnswer(f"HTTP {response.status_code}")
        alias = response.headers.get("x-agent-version", "")
        found.version = alias or found.version
        return said

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _question(model: str, asked: Asked, seen: str, hint: RoleHint) -> dict[str, Json]:
    tools = [{"type": "function", "function": _plain(t)} for t in asked.tools]
    if hint.text and hint.text not in asked.offered:
        tools.append({"type": "function", "function": {"name": hint.text}})
    return {"model": model, "messages": [{"role": USER, "content": seen}], **({"tools": tools} if tools else {})}


def _plain(function: Mapping[str, Json]) -> dict[str, Json]:
    return {k: function[k] for k in ("name", "description", "parameters") if k in function}


def as_heard(said: Said, hint: RoleHint) -> Said:
    """The answer as the program expects it: the call that words stand for becomes words."""
    if hint.text and len(said.calls) == 1 and said.calls[0].call.tool == hint.text:
        return Said(text=_in_words(said.calls[0].call, hint), calls=(), finish="stop", tokens=said.tokens)
    return said


def _in_words(call: ToolCall, hint: RoleHint) -> str:
    args = dict(call.args)
    if call.tool == ANSWER:
        return str(args.get("text", ""))
    return hint.says or (json.dumps(args, ensure_ascii=False) if args else "")


def completion(said: Said, asked: Asked) -> dict[str, Json]:
    """The answer as a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or (None if said.calls else "")}
    if said.calls:
        message["tool_calls"] = _calls(said)
    choice = {"index": 0, "message": message, "finish_reason": said.finish, "logprobs": None}
    return {**_around("chat.completion", asked.model), "choices": [choice], "usage": _usage(said)}


def events(said: Said, asked: Asked) -> Iterator[bytes]:
    """The answer as server-sent events."""
    around = _around("chat.completion.chunk", asked.model)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": said.text}]
    deltas += [{"tool_calls": [{"index": i, **c}]} for i, c in enumerate(_calls(said))]
    for delta in deltas:
        yield _event({**around, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}]})
    yield _event({**around, "choices": [{"index": 0, "delta": {}, "finish_reason": said.finish, "logprobs": None}]})
    if asked.usage:
        yield _event({**around, "choices": [], "usage": _usage(said)})
    yield b"data: [DONE]\n\n"


def _calls(said: Said) -> list[dict[str, Json]]:
    return [
        {
            "id": c.id,
            "type": "function",
            "function": {"name": c.call.tool, "arguments": json.dumps(dict(c.call.args), ensure_ascii=False)},
        }
        for c in said.calls
    ]


def _usage(said: Said) -> dict[str, int]:
    tokens_in, tokens_out = said.tokens or (0, 0)
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def _around(kind: str, model: str) -> dict[str, Json]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _event(data: Mapping[str, Json]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
