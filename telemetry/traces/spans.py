"""Spans from a session's records. Ids follow from what they name: a trace that is built again is the same trace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from runtime.records import Feedback, StateChanged
from runtime.store.dead import DeadLetter
from runtime.store.history import Noted
from runtime.tracing import Context, parsed, root, span_id
from telemetry.episode import short_json
from telemetry.traces import names
from telemetry.traces.deciding import Part, decision_parts
from telemetry.traces.grouping import Chain, Handling, chain_of

SCOPE = InstrumentationScope("repertory")
OPERATOR_KEYS = ":"
"""Stands in the keys of turns over HTTP (``client:…``, ``run:…``) and in no event's id."""
Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a session beside its history."""

    feedback: Sequence[Feedback] = ()
    dead: Sequence[DeadLetter] = ()
    """Events of the session that were given up."""


NOTHING = Beside()


def spans_of(team: str, noted: Sequence[Noted], beside: Beside = NOTHING) -> list[ReadableSpan]:
    """A session's trace; empty where its opening is not on record.

    Args:
        team: whose session.
        noted: its whole history, in order.
        beside: what else is known.
    """
    chain = chain_of(team, noted)
    return list(_Builder(chain).spans(beside)) if chain else []


class _Builder:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._name = chain.opened.correlation_id
        self._root = root(self._name, chain.opened.traceparent)
        self._resource = Resource({"service.name": f"repertory.{chain.team}"})

    def spans(self, beside: Beside) -> Iterator[ReadableSpan]:
        chain = self._chain
        yield self._session()
        for handling in chain.handlings:
            yield from self._handling(handling)
        for failure in chain.failed:
            yield self._failed(failure, self._root.span)
        for letter in beside.dead:
            yield self._dead(letter)
        for number, said in enumerate(beside.feedback):
            yield self._feedback(said, number)

    def _session(self) -> ReadableSpan:
        chain, opened, end = self._chain, self._chain.opened, self._chain.end
        pays = [d for h in chain.handlings for decision in h.decisions for d in decision_parts(decision)]
        attributes = {
            names.KIND: "CHAIN",
            names.OPERATION: "invoke_workflow",
            names.WORKFLOW: chain.team,
            names.SCENARIO: opened.scenario,
            names.VERSION: opened.version,
            names.INPUT: short_json(opened.case["visible"]) if opened.case else opened.scenario,
            names.ENDED: end is not None,
            names.REWARD: sum(p.attributes.get(names.REWARD, 0.0) for p in pays),
            names.COST: sum(p.attributes.get(names.COST, 0.0) for p in pays if p.own_cost),
        }
        if end is not None:
            attributes |= {names.OUTPUT: short_json(dict(end.outcome)), names.SUCCESS: end.success}
        given_up = end is not None and "given_up" in end.outcome
        status = Status(StatusCode.ERROR, str(end.outcome["given_up"])) if end and given_up else Status(StatusCode.OK)
        return self._span(
            Part(f"invoke_workflow {chain.team}", self._root.span, opened.at, chain.last, attributes),
            parent=parsed(opened.traceparent),
            status=status if end else Status(),
        )

    def _handling(self, handling: Handling) -> Iterator[ReadableSpan]:
        if not handling.event_id:  # in training, and in what was played without a bus
            parent = self._root.span
        else:
            parent = span_id(handling.event_id, "process")
            above = self._root.span
            if handling.cause is not None:
                above = span_id(handling.event_id, "send")
                yield self._sent(handling, handling.cause)
            tries = list(self._tries(handling, above))
            yield from tries
            yield self._processed(handling, above, tries)
        for decision in handling.decisions:
            for part in decision_parts(decision):
                inner = parent if part.parent is None else part.parent
                yield self._span(part, parent=Context(self._root.trace, inner), status=part.status)

    def _sent(self, handling: Handling, cause: Handling) -> ReadableSpan:
        sent = Part(
            f"send {self._stream(handling.role)}",
            span_id(handling.event_id, "send"),
            cause.ended,
            cause.ended,
            {**self._message(handling.event_id, handling.role, "send"), names.KIND: "CHAIN"},
            SpanKind.PRODUCER,
        )
        return self._span(sent, parent=Context(self._root.trace, span_id(cause.event_id, "process")))

    def _processed(self, handling: Handling, above: str, tries: Sequence[ReadableSpan]) -> ReadableSpan:
        over_http = OPERATOR_KEYS in handling.event_id
        name = f"turn {handling.role}" if over_http else f"process {self._stream(handling.role)}"
        own = {} if over_http else self._message(handling.event_id, handling.role, "process")
        part = Part(
            name,
            span_id(handling.event_id, "process"),
            handling.began,
            handling.ended,
            {**own, names.KIND: "CHAIN", names.ATTEMPTS: handling.attempt},
            SpanKind.SERVER if over_http else SpanKind.CONSUMER,
        )
        links = [Link(cast("SpanContext", t.context)) for t in tries]
        return self._span(part, parent=Context(self._root.trace, above), links=links)

    def _tries(self, handling: Handling, above: str) -> Iterator[ReadableSpan]:
        """The tries before the one that succeeded: those that raised are on record, the others died with a process."""
        for failure in handling.failed:
            yield self._failed(failure, above)
        for number in range(len(handling.failed) + 1, handling.attempt):
            part = Part(
                f"process {self._stream(handling.role)}",
                span_id(handling.event_id, "lost", number),
                handling.began,
                handling.began,
                {**self._message(handling.event_id, handling.role, "process"), names.KIND: "CHAIN"},
                SpanKind.CONSUMER,
            )
            why = Status(StatusCode.ERROR, "its process ended before it had committed")
            yield self._span(part, parent=Context(self._root.trace, above), status=why)

    def _failed(self, failure: StateChanged, above: str) -> ReadableSpan:
        part = Part(
            f"process {self._stream(failure.agent)}",
            span_id(self._name, failure.agent, repr(failure.at), "failed"),
            failure.at,
            failure.at,
            {names.KIND: "CHAIN", names.OI_AGENT: failure.agent, names.ERROR_TYPE: "failed"},
            SpanKind.CONSUMER,
        )
        status = Status(StatusCode.ERROR, failure.refused or "the agent's code raised")
        return self._span(part, parent=Context(self._root.trace, above), status=status)

    def _dead(self, letter: DeadLetter) -> ReadableSpan:
        part = Part(
            f"dead letter {letter.stream}",
            span_id(letter.event_id, letter.group, "dead"),
            letter.at,
            letter.at,
            {
                **self._message(letter.event_id, letter.fields.get("to", ""), "settle"),
                names.KIND: "CHAIN",
                names.ATTEMPTS: letter.attempts,
            },
            SpanKind.CONSUMER,
        )
        tries = [Link(cast("SpanContext", self._failed(f, self._root.span).context)) for f in self._chain.failed]
        status = Status(StatusCode.ERROR, letter.reason)
        return self._span(part, parent=self._root, status=status, links=tries)

    def _feedback(self, said: Feedback, number: int) -> ReadableSpan:
        above = span_id(said.decision_id, "agent") if said.decision_id else self._root.span
        part = Part(
            "feedback",
            span_id(self._name, "feedback", number),
            said.at,
            said.at,
            {names.KIND: "EVALUATOR", names.TERM: said.source or "feedback", names.SCORE: said.value},
        )
        return self._span(part, parent=Context(self._root.trace, above))

    def _message(self, event_id: str, role: str, operation: str) -> dict[str, Any]:
        return {
            names.SYSTEM: "redis",
            names.DESTINATION: self._stream(role),
            names.MESSAGE: event_id,
            names.MESSAGE_CONVERSATION: self._name,
            names.MESSAGE_OPERATION: operation,
        }

    def _stream(self, role: str) -> str:
        return f"agent_events:{self._chain.team}:{role}"

    def _span(
        self, part: Part, *, parent: Context | None, status: Status | None = None, links: Sequence[Link] = ()
    ) -> ReadableSpan:
        always = {names.CORRELATION: self._name, names.SESSION: self._name, names.CONVERSATION: self._name}
        return ReadableSpan(
            part.name,
            context=_context(Context(self._root.trace, part.span)),
            parent=_context(parent) if parent else None,
            resource=self._resource,
            attributes={**always, **part.attributes},
            events=[Event(name, attributes=dict(a), timestamp=_ns(at)) for name, at, a in part.events],
            links=links,
            kind=part.kind,
            status=status or Status(),
            start_time=_ns(part.began),
            end_time=_ns(part.ended),
            instrumentation_scope=SCOPE,
        )


def _context(place: Context) -> SpanContext:
    return SpanContext(int(place.trace, 16), int(place.span, 16), is_remote=False, trace_flags=TraceFlags(1))


def _ns(at: float) -> int:
    return int(at * 1_000_000_000)
