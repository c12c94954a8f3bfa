"""A question to a language model, what comes back piece by piece, and the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

FailureKind = Literal[
    "connect", "timeout", "cut", "server", "malformed", "rate_limited", "refused", "breaker_open", "failed"
]
"""Why a model gave no answer. ``refused``: it will not answer this request, however often it is asked."""

RETRIED: frozenset[FailureKind] = frozenset({"connect", "timeout", "cut", "server", "malformed", "rate_limited"})
"""What may go well the next time."""
AGAINST: frozenset[FailureKind] = frozenset({"connect", "timeout", "cut", "server", "malformed", "failed"})
"""What counts against a model in its breaker. A refusal shows that it is alive; 429 slows callers down instead."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a model is asked."""

    messages: tuple[Message, ...]
    max_tokens: int = 256
    """The longest answer, in tokens."""
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema the answer should follow, where the model can be held to one."""

    @property
    def text(self) -> str:
        """All that is sent, for counting."""
        return "\n".join(m.text for m in self.messages)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text has come; none where the model only said that it is at work."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The model is through."""

    tokens_in: int | None = None
    """As the model reports; None where it does not."""
    tokens_out: int | None = None
    reason: str = "stop"
    """``stop``, or ``length`` where the answer was cut at ``max_tokens``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """There will be no answer."""

    kind: FailureKind
    message: str
    retry_after_s: float | None = None
    """How long the model asks to be left alone (s)."""
    hasty: bool = False
    """The budget ran out before it was waited for long enough to blame the model."""


Happening = Piece | Finished | Failure
"""What a model does after it was asked: pieces, then one of the other two."""


class Source(Protocol):
    """A language model that can be asked."""

    @property
    def provider(self) -> str:
        """Who runs it."""
        ...

    @property
    def model(self) -> str:
        """Its name there."""
        ...

    def start(self, request: Request, deliver: Callable[[Happening], None]) -> Callable[[], None]:
        """Begin to answer, from another thread or at once. Returns what cancels it; never waits."""
        ...

    def count(self, text: str) -> int | None:
        """Tokens in the text; None without a tokenizer."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What a question cost, whoever answered it in the end. Attempts that brought nothing are in the time."""

    provider: str = ""
    model: str = ""
    """Who answered; empty for nobody."""
    tokens_in: int = 0
    tokens_out: int = 0
    counted: Literal["reported", "tokenizer", "estimated"] = "reported"
    """By the model, by its tokenizer, or as a quarter of the characters."""
    ms: float = 0.0
    cost_usd: float | None = None
    """None: no price is known for the model."""
    degraded: bool = False
    """Not by the declared model: to be left out where rewards are compared."""
    attempts: int = 0
    """Calls made, over all models."""
    cached: bool = False
    """The reply was given before: what is told here was spent then."""

    def fields(self) -> dict[str, Any]:
        """What a ``ModelCalled`` record says of it, besides whose decision it was for."""
        return {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "ms": self.ms,
            "degraded": self.degraded,
            "model": f"{self.provider}/{self.model}" if self.provider else self.model,
            "cost_usd": self.cost_usd,
            "attempts": self.attempts,
            "cached": self.cached,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A model, or the local policy in its place, has answered."""

    text: str
    spent: Spent
    reason: str = "stop"
    failures: tuple[Failure, ...] = ()
    """What went wrong before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unavailable:
    """Nobody answered within the budget: neither the model nor its fallbacks. Always degraded."""

    spent: Spent
    failures: tuple[Failure, ...]
    partial: str = ""
    """What had come before it broke off."""

    @property
    def why(self) -> str:
        """The failures in one line."""
        return "; ".join(f"{f.kind}: {f.message}" for f in self.failures)


Answer = Answered | Unavailable

LocalPolicy = Callable[[Request], str]
"""Answers without a language model, as the last resort."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Partial:
    """An attempt's text so far, and how it ended."""

    text: str
    end: Finished | Failure
    attempts: int
    failures: tuple[Failure, ...] = field(default=())
