"""Which agent: plain values that go to its process. No secrets and no models, only references to them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from runtime.actor.behaviour import Behaviour
from runtime.bus.contracts import Agreements
from runtime.bus.settings import BusSettings
from runtime.errors import TeamError

FaultKind = Literal["crash", "hang", "slow", "corrupt"]
POINTS = ("start", "before_handle", "after_handle", "before_commit", "after_commit")
"""Where a fault can be put. ``corrupt`` damages what is about to be committed, and belongs to ``before_commit``. On the
bus, where events are committed together, there is no ``after_commit``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something that goes wrong on purpose, in tests."""

    at: str
    """One of ``POINTS``."""
    kind: FaultKind
    seconds: float = 0.0
    """How long it hangs or is slow (s); 0: for ever."""
    marker: str = ""
    """A file that is made when it happens, and whose presence keeps it from happening again: also after a crash."""

    def __post_init__(self) -> None:
        if self.at not in POINTS:
            raise ValueError(f"{self.at!r} is no point of an agent's; there are {', '.join(POINTS)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class BusSpec:
    """The bus that an agent lives on."""

    redis: str
    """``embedded:DIRECTORY``, a URL, or ``env:NAME`` of the variable that holds it."""
    roles: tuple[str, ...]
    """Whoever gets events in the team."""
    agreed: Agreements | None = None
    settings: BusSettings | None = None
    shard: int = 0
    """Which of the role's streams it reads."""
    keep: bool = True
    """Takes part in the bus's upkeep."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSpec:
    """An agent to be started."""

    team: str
    role: str
    make: Callable[[], Behaviour]
    """Makes what it does, in its own process. Pickled: a function of a module, or a frozen value that can be called."""
    version: str = ""
    session: str = ""
    """The only session it is for; empty: it serves all that come."""
    store: str = ""
    """The store's URL, or ``env:NAME`` of the variable that holds it; empty: state is lost with the process."""
    bus: BusSpec | None = None
    """None: it is called directly, and who calls it passes on what it sends."""
    detached: bool = False
    """It lives on when the program that started it ends."""
    durability: Literal["full", "normal"] = "full"
    memory_mb: int | None = None
    """Resident memory (MB) above which the process ends itself, saying so; None: no limit."""
    cpus: float = 0.0
    """CPUs that Ray keeps free for it: none by default, an agent mostly waits."""
    faults: tuple[Fault, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of its process; no secrets, Ray shows them."""

    def __post_init__(self) -> None:
        if not self.team or not self.role:
            raise TeamError("an agent needs a team and a role")

    @property
    def name(self) -> str:
        """Unique for team, version, role and session, whatever characters they have."""
        parts = (self.team, self.version, self.role, self.session)
        return "agent:" + ":".join(quote(p, safe="") for p in parts)

    @property
    def owner(self) -> str:
        """What it claims to be the one writer of. Versions keep apart: each has its own sessions."""
        return f"actor:{self.name}"


def reference(text: str) -> str:
    """A URL, or what the environment variable of ``env:NAME`` holds: secrets stand in no argument.

    Raises:
        TeamError: the variable is not set.
    """
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    value = os.environ.get(name)
    if not value:
        raise TeamError(f"the environment variable {name} is not set: it should hold an address")
    return value
