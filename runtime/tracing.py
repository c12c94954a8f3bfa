"""Trace context (W3C): ids that follow from what they name, so that every process has the same, also after a crash.

https://www.w3.org/TR/trace-context/
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b

HEADER = "traceparent"
FORM = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_CURRENT: ContextVar[str] = ContextVar(HEADER, default="")


@dataclass(frozen=True, slots=True)
class Context:
    """A span's place."""

    trace: str
    """32 hexadecimal digits."""
    span: str
    """16 hexadecimal digits."""

    @property
    def header(self) -> str:
        """As ``traceparent``, sampled."""
        return f"00-{self.trace}-{self.span}-01"


def parsed(header: str) -> Context | None:
    """Who sent a ``traceparent``; None where it is none."""
    found = FORM.fullmatch(header.strip().lower())
    if found is None or header[:2].lower() == "ff" or not int(found[1], 16) or not int(found[2], 16):
        return None
    return Context(found[1], found[2])


def trace_id(correlation: str) -> str:
    """The trace of an episode or session that nobody else has begun one for."""
    return blake2b(correlation.encode(), digest_size=16).hexdigest()


def span_id(*parts: str | int) -> str:
    """A span's id, from what names it over all processes."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).hexdigest()


def root(correlation: str, traceparent: str = "") -> Context:
    """The span of a whole session; in the trace of whoever asked for it, where that is known."""
    asker = parsed(traceparent)
    return Context(asker.trace if asker else trace_id(correlation), span_id(correlation, "session"))


def model_call(within: Context, decision_id: str) -> Context:
    """The span of the question to a model that a decision asked."""
    return Context(within.trace, span_id(decision_id, "model"))


def current() -> str:
    """The ``traceparent`` that goes out with what is asked from here; empty: none."""
    return _CURRENT.get()


@contextmanager
def carried(traceparent: str) -> Generator[None]:
    """Send this context out with whatever is asked inside the block."""
    token = _CURRENT.set(traceparent)
    try:
        yield
    finally:
        _CURRENT.reset(token)
