"""Models behind an OpenAI-compatible endpoint. The SDK's own retries are off: ``calling`` is the one that retries."""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime.background import Loop
from runtime.errors import RepertoryError
from runtime.llm.limits import Limits
from runtime.llm.types import Failure, FailureKind, Finished, Happening, Piece, Request
from runtime.tracing import HEADER, current

if TYPE_CHECKING:
    import openai

TRANSIENT = (408, 409, 425)
"""Statuses below 500 that may be different the next time."""
SHOWN_CHARS = 200
"""How much of an unexpected body stands in the message."""

Deliver = Callable[[Happening], None]


class KeyMissing(RepertoryError):
    """The environment variable that should hold a provider's key is not set."""


class Chat:
    """A model of an OpenAI-compatible provider."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        key: str,
        limits: Limits,
        provider: str = "",
        count: Callable[[str], int] | None = None,
    ) -> None:
        import openai

        self.model, self.provider = model, provider or base_url.split("//", 1)[-1].split("/", 1)[0]
        self._count = count
        self._loop = Loop(f"chat {self.provider}")
        timeout = openai.Timeout(limits.total_s, connect=limits.connect_s)
        self._client = openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=timeout)

    def start(self, request: Request, deliver: Deliver) -> Callable[[], None]:
        """Begin to answer."""
        future = self._loop.submit(self._answer(request, deliver, current()))

        def cancel() -> None:
            future.cancel()

        return cancel

    def count(self, text: str) -> int | None:
        """Tokens in the text, where there is a tokenizer."""
        return self._count(text) if self._count else None

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.close(), 5.0)
        self._loop.close()

    async def _answer(self, request: Request, deliver: Deliver, trace: str) -> None:
        try:
            await self._streamed(request, deliver, trace)
        except Exception as error:  # noqa: BLE001 - whatever a provider or its SDK does, the caller is told
            deliver(failure_of(error))

    async def _streamed(self, request: Request, deliver: Deliver, trace: str) -> None:
        create: Any = self._client.chat.completions.create
        headers = {HEADER: trace} if trace else {}
        stream: Any = await create(**_body(self.model, request), extra_headers=headers)
        async with stream:
            kind = stream.response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                deliver(Failure(kind="malformed", message=f"an event stream was expected, not {kind or 'nothing'}"))
                return
            tokens: tuple[int, int] | None = None
            reason = ""
            async for chunk in stream:
                tokens = _usage(chunk) or tokens
                text, why = _choice(chunk)
                reason = why or reason
                deliver(Piece(text))
        if not reason:
            deliver(Failure(kind="cut", message="the stream ended before the answer did"))
            return
        tokens_in, tokens_out = tokens or (None, None)
        deliver(Finished(tokens_in=tokens_in, tokens_out=tokens_out, reason=reason))


def key_from(variable: str) -> str:
    """The provider's key, from the environment: it stands in no file and no argument.

    Raises:
        KeyMissing: it is not there.
    """
    key = os.environ.get(variable, "")
    if not key:
        raise KeyMissing(f"the environment variable {variable} holds no key: export it before the start")
    return key


def _body(model: str, request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.text} for m in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None:
        schema = {"name": "answer", "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _choice(chunk: Any) -> tuple[str, str]:
    """A chunk's text, and why the answer ended if it did."""
    choices = chunk.choices
    if choices is None:
        raise ValueError("a chunk without choices")
    if not choices:
        return "", ""
    text = choices[0].delta.content or ""
    if not isinstance(text, str):
        raise ValueError("a chunk whose content is no text")
    return text, choices[0].finish_reason or ""


def _usage(chunk: Any) -> tuple[int, int] | None:
    used = getattr(chunk, "usage", None)
    if used is None:
        return None
    return int(used.prompt_tokens), int(used.completion_tokens)


def failure_of(error: Exception) -> Failure:
    """What went wrong, from what the SDK raised."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status(error)
    if isinstance(error, openai.APITimeoutError):
        return Failure(kind="timeout", message=_line(error.__cause__ or error))
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        kind: FailureKind = "connect" if "connect" in type(cause).__name__.lower() else "cut"
        return Failure(kind=kind, message=_line(cause))
    if isinstance(error, openai.APIError):  # an error that came as an event of the stream
        return Failure(kind="server", message=_line(error))
    if isinstance(error, json.JSONDecodeError | ValueError | TypeError | AttributeError | KeyError):
        return Failure(kind="malformed", message=_line(error))
    return Failure(kind="failed", message=_line(error))


def _status(error: "openai.APIStatusError") -> Failure:
    status, message = error.status_code, f"HTTP {error.status_code} {_line(error)}"
    if status == 429:
        return Failure(kind="rate_limited", message=message, retry_after_s=retry_after(error.response.headers))
    if status >= 500 or status in TRANSIENT:
        return Failure(kind="server", message=message, retry_after_s=retry_after(error.response.headers))
    return Failure(kind="refused", message=message)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:SHOWN_CHARS]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or a date)."""
    from email.utils import parsedate_to_datetime

    from runtime.seams import now

    try:
        if "retry-after-ms" in headers:
            return max(float(headers["retry-after-ms"]) / 1000, 0.0)
        if "retry-after" not in headers:
            return None
        given = headers["retry-after"]
        if given.strip().replace(".", "", 1).isdigit():
            return float(given)
        return max(parsedate_to_datetime(given).timestamp() - now(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
