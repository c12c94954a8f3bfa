"""What the proxy is told: where it listens and asks, how roles are known, which role is served by a trained version."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import Field

from runtime.records import Closed


class RoleHint(Closed, strict=True):
    """How a role is known, and what it means when it answers in words."""

    prompt: str = Field(default="", max_length=100_000)
    """What its system prompt begins with; empty: it is known by the header, or by its tools."""
    tools: tuple[str, ...] = Field(default=(), strict=False)
    """Tools that it is offered, all of them; empty: it is not known by them."""
    text: str = Field(default="", max_length=200)
    """The team's call that an answer in words stands for, such as `hand_over`; empty: `answer`, with its text."""
    says: str = Field(default="", max_length=10_000)
    """What the program is told in words when a trained version makes that call."""


class Roles(Closed, strict=True):
    """The file that ``--roles`` names."""

    team: str = Field(default="proxy", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    """The name under which conversations are recorded: that of the team that is to learn from them."""
    roles: dict[str, RoleHint] = Field(default_factory=dict[str, RoleHint])
    """Roles by name."""


class Bounds(Closed):
    """What keeps the proxy up, and a program that uses it going."""

    body_bytes: int = Field(default=20_000_000, gt=0)
    """The largest body of a request (bytes)."""
    answer_bytes: int = Field(default=20_000_000, gt=0)
    """An answer longer than that (bytes) goes through and is not recorded."""
    open: int = Field(default=256, gt=0)
    """Requests that are worked on at once; more are answered 503 with Retry-After."""
    connect_s: float = Field(default=10.0, gt=0)
    """How long the upstream may take to accept a connection (s)."""
    silence_s: float = Field(default=300.0, gt=0)
    """How long the upstream may say nothing (s): longer than any patient client waits."""
    answer_s: float = Field(default=1800.0, gt=0)
    """How long a whole answer may take (s)."""
    idle_s: float = Field(default=900.0, gt=0)
    """When a conversation is over because nobody went on with it (s)."""
    conversations: int = Field(default=10_000, gt=0)
    """Conversations that are open at once; beyond them, the one that was longest silent ends."""
    unwritten: int = Field(default=2_000, gt=0)
    """Groups of records that may wait for the store; more are dropped, and that is said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Serve:
    """A trained version in the place of the upstream, for one role."""

    url: str
    """Its OpenAI-compatible endpoint, with ``/v1``."""
    role: str
    model: str
    """``TEAM/ROLE``, or ``TEAM/ROLE@VERSION``."""
    key: str = ""
    """The bearer token of that server."""
    ratio: float = 0.0
    """The share of new conversations of the role that it gets, 0 to 1."""
    redis: str = ""
    """Where an operator changes that share (``TEAM_ROLE_ratio``); empty: nowhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All of it."""

    upstream: str
    """The endpoint whose answers go through, such as ``https://api.openai.com/v1``."""
    store: str
    """The store's URL."""
    host: str = "127.0.0.1"
    port: int = 8010
    token: str = ""
    """What callers show in ``x-proxy-token``; empty: nothing, which only this machine's own may."""
    roles: Roles = field(default_factory=Roles)
    bounds: Bounds = field(default_factory=Bounds)
    serve: Serve | None = None

    @property
    def provider(self) -> str:
        """Who answers, for records: the upstream's host and port."""
        return provider_of(self.upstream)


def provider_of(url: str) -> str:
    """Host and port of an address, without a user or password that may stand in it."""
    return urlsplit(url).netloc.rpartition("@")[2]
