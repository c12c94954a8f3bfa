"""One decision as spans: the agent, the model that it asked, the tool that it called, what it was paid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.trace import SpanKind, Status, StatusCode

from runtime.records import Decided, ModelCalled, Rewarded, ToolAnswered, ToolCalled
from runtime.tracing import span_id
from telemetry.episode import short_json
from telemetry.traces import names
from telemetry.traces.grouping import Decision, seen_in

Told = tuple[str, float, Mapping[str, Any]]
"""An event on a span: its name, when (Unix time, s), and its attributes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A span without its surroundings. Times are Unix times in seconds."""

    name: str
    span: str
    began: float
    ended: float
    attributes: Mapping[str, Any]
    kind: SpanKind = SpanKind.INTERNAL
    parent: str | None = None
    """The span above; None: whatever the decision belongs to."""
    status: Status | None = None
    events: tuple[Told, ...] = field(default=())
    own_cost: bool = False
    """Its cost is its own, not the sum of others'."""


def decision_parts(decision: Decision) -> Iterator[Part]:
    """The agent's span, then those inside it."""
    agent = _agent(decision)
    yield agent
    models = [r for r in decision.records if isinstance(r, ModelCalled)]
    for number, asked in enumerate(models):
        yield _model(decision, asked, number, agent.span)
    answers = [r for r in decision.records if isinstance(r, ToolAnswered)]
    for number, answered in enumerate(answers):
        yield _tool(decision, answered, number, agent.span)


def _agent(decision: Decision) -> Part:
    first, seen = decision.records[0], seen_in(decision)
    decided = next((r for r in decision.records if isinstance(r, Decided)), None)
    pays = [r for r in decision.records if isinstance(r, Rewarded)]
    attributes: dict[str, Any] = {
        names.KIND: "AGENT",
        names.OPERATION: "invoke_agent",
        names.AGENT_NAME: decision.agent,
        names.AGENT_ID: decision.agent,
        names.OI_AGENT: decision.agent,
        names.DECISION: first.decision_id,
        names.REWARD: sum(r.value for r in pays if r.value is not None),
        names.REWARD_MISSING: any(r.value is None for r in pays),
    }
    if seen is not None:
        attributes |= {names.INPUT: seen.text, names.INPUT_TYPE: "text/plain"}
    if decided is not None:
        attributes |= {names.OUTPUT: short_json(decided.call.model_dump()), names.OUTPUT_TYPE: "application/json"}
        if decided.logp is not None:
            attributes[names.LOGP] = decided.logp
    return Part(
        f"invoke_agent {decision.agent}",
        span_id(first.decision_id, "agent"),
        first.at,
        max(r.at for r in decision.records),
        attributes,
        events=tuple(_judged(r) for r in pays),
    )


def _judged(record: Rewarded) -> Told:
    said: dict[str, Any] = {names.TERM: record.term}
    if record.value is None:
        said[names.EXPLANATION] = f"missing: {record.missing or 'no reason given'}"
    else:
        said[names.SCORE] = record.value
    return names.JUDGED, record.at, said


def _model(decision: Decision, asked: ModelCalled, number: int, above: str) -> Part:
    provider, _, model = asked.model.partition("/")
    seen = seen_in(decision)
    decided = next((r for r in decision.records if isinstance(r, Decided)), None)
    attributes: dict[str, Any] = {
        names.KIND: "LLM",
        names.OPERATION: "chat",
        names.PROVIDER: provider or "none",
        names.MODEL: model or "none",
        names.TOKENS_IN: asked.tokens_in,
        names.TOKENS_OUT: asked.tokens_out,
        names.LLM_MODEL: model or "none",
        names.LLM_PROVIDER: provider or "none",
        names.LLM_IN: asked.tokens_in,
        names.LLM_OUT: asked.tokens_out,
        names.LLM_ALL: asked.tokens_in + asked.tokens_out,
        names.DEGRADED: asked.degraded,
        names.ATTEMPTS: asked.attempts,
    }
    if asked.cost_usd is not None:
        attributes |= {names.COST: asked.cost_usd, names.LLM_COST: asked.cost_usd}
    if seen is not None:
        attributes |= {names.INPUT: seen.text, names.INPUT_TYPE: "text/plain"}
    if decided is not None:
        attributes |= {names.OUTPUT: short_json(decided.call.model_dump()), names.OUTPUT_TYPE: "application/json"}
    name = (asked.decision_id, "model") if number == 0 else (asked.decision_id, "model", number)
    status = Status(StatusCode.ERROR, "degraded") if asked.degraded else None
    return Part(
        f"chat {model or 'none'}", span_id(*name), asked.at - asked.ms / 1000, asked.at, attributes, SpanKind.CLIENT,
        parent=above, status=status, own_cost=True,
    )  # fmt: skip


def _tool(decision: Decision, answered: ToolAnswered, number: int, above: str) -> Part:
    called = [r for r in decision.records if isinstance(r, ToolCalled)]
    decided = next((r for r in decision.records if isinstance(r, Decided)), None)
    asked = called[number] if number < len(called) else None
    args: dict[str, Any] = dict(asked.args if asked else decided.call.args if decided else ())
    tool = answered.tool or "none"
    attributes: dict[str, Any] = {
        names.KIND: "TOOL",
        names.OPERATION: "execute_tool",
        names.TOOL: tool,
        names.TOOL_ARGUMENTS: short_json(args),
        names.TOOL_RESULT: short_json(answered.value),
        names.TOOL_NAME: tool,
        names.TOOL_PARAMETERS: short_json(args),
        names.INPUT: short_json(args),
        names.INPUT_TYPE: "application/json",
        names.OUTPUT: short_json(answered.value),
        names.OUTPUT_TYPE: "application/json",
        names.COST: answered.cost_usd,
    }
    status = None
    if answered.fault is not None:
        attributes[names.ERROR_TYPE] = answered.fault.code
        status = Status(StatusCode.ERROR, answered.fault.message)
    return Part(
        f"execute_tool {tool}", span_id(answered.decision_id, "tool", number), asked.at if asked else answered.at,
        answered.at, attributes, parent=above, status=status, own_cost=True,
    )  # fmt: skip
