"""What happened: one frozen, closed record a thing; env, live runtime, rewards, telemetry and serving read the same."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Json = Any
"""Whatever ``json.loads`` can return."""

FaultCode = Literal["malformed", "unknown_tool", "bad_arguments", "illegal", "over_budget", "tool_failed", "bad_answer"]
"""Why a tool call was not carried out, or its answer not accepted."""


class Closed(BaseModel):
    """A value that never changes and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ToolCall(Closed):
    """What an agent wants done."""

    tool: str
    args: Mapping[str, Json] = Field(default_factory=dict)


class Fault(Closed):
    """The structured error an agent gets for a call that failed."""

    code: FaultCode
    message: str
    path: str = ""
    """Where in the arguments, as a JSON path; empty when the whole call is meant."""


class Record(Closed):
    """The part all records share."""

    correlation_id: str
    """One an episode or session."""
    at: float
    """Unix time, s."""


class DecisionRecord(Record):
    """A record that belongs to one agent's turn."""

    agent: str
    turn: int = Field(ge=0)
    """The agent's own turns so far, from 0."""

    @property
    def decision_id(self) -> str:
        """Names the decision this record belongs to, over all processes."""
        return f"{self.correlation_id}/{self.agent}/{self.turn}"


class EpisodeOpened(Record):
    """A team began on a scenario."""

    kind: Literal["episode_opened"] = "episode_opened"
    team: str
    scenario: str
    """The scenario's id."""
    seed: int
    version: str = ""
    """Alias or content hash of the trained team; empty while it is in training."""
    case: Mapping[str, Json] | None = None
    """The scenario itself (``visible``, ``truth``, ``seed``), where it cannot be looked up by its id: live sessions."""
    traceparent: str = ""
    """W3C trace context of whoever asked for it; empty: the trace begins here."""


class Observed(DecisionRecord):
    """What an agent saw before it decided."""

    kind: Literal["observed"] = "observed"
    text: str
    candidates: tuple[ToolCall, ...] = ()
    mask: tuple[bool, ...] = ()
    """Which candidates were legal."""


class Decided(DecisionRecord):
    """What an agent decided, and how sure its policy was."""

    kind: Literal["decided"] = "decided"
    call: ToolCall
    logp: float | None = None
    """Natural logarithm of the call's probability (nat); None for a policy that has none."""
    probabilities: tuple[float, ...] | None = None
    policy_hash: str = ""


class ToolCalled(DecisionRecord):
    """A tool was asked."""

    kind: Literal["tool_called"] = "tool_called"
    tool: str
    args: Mapping[str, Json] = Field(default_factory=dict)


class ToolAnswered(DecisionRecord):
    """A tool finished, well or badly."""

    kind: Literal["tool_answered"] = "tool_answered"
    tool: str
    ok: bool
    value: Json = None
    """The answer as the agent sees it."""
    fault: Fault | None = None
    cost_usd: float = Field(default=0.0, ge=0)
    """What the call was billed, in US dollars."""
    raw: Json = None
    """The answer before coercion, where it was coerced."""


class ToolUndone(DecisionRecord):
    """What a tool did outside was undone, or could not be, after its chain had failed half way."""

    kind: Literal["tool_undone"] = "tool_undone"
    tool: str
    ok: bool
    fault: Fault | None = None


class ModelCalled(DecisionRecord):
    """A language model was asked."""

    kind: Literal["model_called"] = "model_called"
    tokens_in: int = Field(ge=0)
    tokens_out: int = Field(ge=0)
    ms: float = Field(ge=0)
    degraded: bool = False
    """A fallback answered in place of the declared model, or nobody did."""
    model: str = ""
    """Who answered, as PROVIDER/MODEL; empty where nobody did."""
    cost_usd: float | None = None
    """US dollars; None where no price is known for the model."""
    attempts: int = Field(default=1, ge=0)
    """Calls that were made for it, retries and fallbacks included."""
    cached: bool = False
    """The reply was given before: tokens and dollars are those of then, and nobody is billed for them again."""


class Sent(DecisionRecord):
    """One agent sent another a message."""

    kind: Literal["sent"] = "sent"
    to: str
    payload: Json


class Rewarded(DecisionRecord):
    """A reward term judged a step. A missing value is not zero."""

    kind: Literal["rewarded"] = "rewarded"
    term: str
    value: float | None
    """None: the term failed or had nothing to judge."""
    missing: str = ""
    """Why the value is missing."""
    standardized: float | None = None
    scope: Literal["agent", "team"] = "agent"
    """``team``: every agent is paid the value; ``agent`` is then the one whose turn brought it."""
    tokens: int = Field(default=0, ge=0)
    """What a model that was asked for the value read and wrote."""
    cost_usd: float = Field(default=0.0, ge=0)
    """What asking it was billed, in US dollars."""
    cached: bool = False
    """It was asked before: tokens and dollars are those of then."""


class StateChanged(Record):
    """An agent went from one state to another, or was refused to."""

    kind: Literal["state_changed"] = "state_changed"
    agent: str
    before: str
    after: str
    refused: str = ""


class AgentStarted(Record):
    """An agent's process began to serve. Its correlation id is the agent's name."""

    kind: Literal["agent_started"] = "agent_started"
    agent: str
    epoch: int = Field(ge=0)
    """Of its ownership: one more at each start; 0 without a store."""
    pid: int
    cold_start_ms: float = Field(ge=0)
    """From the first line of its own that ran to readiness: behaviour made, store open."""


class AgentStopped(Record):
    """An agent's process ended in order, or because it had to. One that was killed leaves no such record."""

    kind: Literal["agent_stopped"] = "agent_stopped"
    agent: str
    why: str


class Redelivered(Record):
    """An agent dealt with an event that had been tried before: a try failed, or its process ended over it."""

    kind: Literal["redelivered"] = "redelivered"
    agent: str
    attempt: int = Field(ge=2)
    """Which try it was that succeeded."""


class Feedback(Record):
    """A reward from outside, for one decision or for the whole session."""

    kind: Literal["feedback"] = "feedback"
    decision_id: str | None = None
    value: float
    source: str = ""


class EpisodeEnded(Record):
    """The run of a team on a scenario is over."""

    kind: Literal["episode_ended"] = "episode_ended"
    outcome: Mapping[str, Json]
    success: bool
    truncated: bool = False
    """Cut by a limit, not ended by the team."""


AnyRecord = Annotated[
    EpisodeOpened
    | Observed
    | Decided
    | ToolCalled
    | ToolAnswered
    | ToolUndone
    | ModelCalled
    | Sent
    | Rewarded
    | StateChanged
    | AgentStarted
    | AgentStopped
    | Redelivered
    | Feedback
    | EpisodeEnded,
    Field(discriminator="kind"),
]
"""The vocabulary: every record there is."""


def billed(record: Record) -> tuple[float, int]:
    """What somebody was billed for a record now: US dollars, and tokens of language models."""
    match record:
        case ToolAnswered():
            return record.cost_usd, 0
        case ModelCalled() if not record.cached:
            return record.cost_usd or 0.0, record.tokens_in + record.tokens_out
        case Rewarded() if not record.cached:
            return record.cost_usd, record.tokens
        case _:
            return 0.0, 0


RECORD: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)
"""Reads and writes any record as JSON."""
