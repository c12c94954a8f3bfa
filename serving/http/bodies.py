"""What requests and answers hold."""

from typing import Annotated, Any

from pydantic import Field

from runtime.records import Closed, Json
from serving.steering import Pinned


class Case(Closed):
    """What the team is to work on."""

    id: Annotated[str, Field(max_length=200)] = "live"
    visible: dict[str, Json]
    """What its agents may see."""
    truth: dict[str, Json] = Field(default_factory=dict[str, Json])
    """What only the world and the rewards read, where the world is simulated."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """What the world draws its chance from."""

    def payload(self) -> Json:
        """What opens the session."""
        return {"open": self.model_dump()}


class Draw(Closed):
    """A case that the team draws itself."""

    split: Annotated[str, Field(max_length=100)] = "eval"
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    index: Annotated[int, Field(ge=0, lt=2**53)] = 0

    def payload(self) -> Json:
        """What opens the session."""
        return {"draw": self.model_dump()}


class Opening(Closed):
    """Opens a session: on a case that is sent, or on one that the team draws itself."""

    scenario: Case | None = None
    draw: Draw | None = None

    def payload(self) -> Json:
        """What opens the session; a case that is sent goes before one that is drawn."""
        return (self.scenario or self.draw or Draw()).payload()


class Why(Closed):
    """The reason of a change, for the history."""

    why: Annotated[str, Field(max_length=1000)] = ""


class Share(Why):
    """A canary's share of new sessions."""

    ratio: Annotated[float, Field(ge=0, le=1)]


class Back(Why):
    """A rollback."""

    pinned: Pinned = "finish"
    """What becomes of the sessions that are open on the version."""


class SessionOpened(Closed):
    """A session that turns can be asked for in."""

    session: str
    team: str
    version: str


class Decision(Closed):
    """What an agent decided, and what came of it."""

    id: str
    """For feedback."""
    agent: str
    tool: str
    args: dict[str, Json]
    ok: bool | None = None
    answer: Json = None
    fault: dict[str, Any] | None = None


class Turn(Closed):
    """One role's turn."""

    turn: int
    """From 0."""
    agent: str
    decisions: list[Decision]
    to_act: str | None
    """Who is next; null: nobody, the session is over."""
    ended: bool
    outcome: dict[str, Json] | None
    success: bool | None
    cost_usd: float
    degraded: bool
    """A fallback model answered in place of the declared one."""


class TurnTaken(Turn):
    """One role's turn, in its session."""

    session: str
    version: str


class RunDone(Closed):
    """A whole chain."""

    session: str
    team: str
    version: str
    turns: list[Turn]
    outcome: dict[str, Json] | None
    success: bool | None
    cost_usd: float
    degraded: bool


class SessionEnded(Closed):
    """A session that is over."""

    session: str
    version: str
    ended: bool = True


class VersionShown(Closed):
    """A version of a team."""

    version: str
    hash: str
    state: str
    current: bool
    ratio: float
    open_sessions: int
    reason: str
    """Why it failed, where it did."""
    lineage: dict[str, Json]
    at: float
    """When it was registered (Unix time, s)."""


class ChangeShown(Closed):
    """A line of the history."""

    id: int
    version: str
    action: str
    by: str
    why: str
    what: dict[str, Json]
    at: float
    """Unix time, s."""


class Problem(Closed):
    """What was wrong."""

    code: str
    message: str


class Wrong(Closed):
    """An answer that is an error."""

    error: Problem
