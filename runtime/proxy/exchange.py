"""One question and its answer."""

from dataclasses import dataclass
from time import monotonic

from runtime.proxy.asked import Asked
from runtime.proxy.conversations import Conversation
from runtime.proxy.settings import RoleHint


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A question, and all that is known of who asks it."""

    found: Conversation
    asked: Asked
    role: str
    hint: RoleHint
    seen: str
    """What the role sees."""
    at: float
    """When it was asked (Unix time, s)."""
    began: float
    """The same on the monotonic clock (s)."""

    @property
    def ms(self) -> float:
        """How long ago that was."""
        return 1000 * (monotonic() - self.began)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """Who answered, and what it took."""

    model: str
    """As PROVIDER/MODEL; empty: nobody answered."""
    ms: float
    attempts: int = 1
    degraded: bool = False
    """Another one than was meant to."""
