"""An event: what one role says to another. The stream fields of the contract, and nothing else."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from runtime.bus.errors import Undecodable
from runtime.records import Json

FIELDS = (
    "event_id",
    "correlation_id",
    "from",
    "to",
    "payload",
    "seq",
    "attempt",
    "timestamp",
    "traceparent",
    "tracestate",
    "contract",
)
"""The fields of a stream entry, in this order; the last three only where they say something."""
OPERATOR = "operator"
"""The sender of an event that a person made by hand without naming one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One message on the bus. ``publish`` fills in what is left empty."""

    to: str
    """The role it is for."""
    payload: Json
    """Whatever JSON can say."""
    sender: str = OPERATOR
    """The role it comes from (the field ``from``)."""
    correlation_id: str = ""
    """One a session; on every event of it, over all retries. Empty: a session of its own."""
    event_id: str = ""
    """Names the event for ever: the same over retries, redelivery and replay. A tool's idempotency key."""
    seq: int = 0
    """Its place, from 1, among what ``sender`` says to ``to`` in this session; 0: it has no order."""
    attempt: int = 1
    """How often the event was put on the stream: more than 1 after a replay."""
    timestamp: float = 0.0
    """When it was published (Unix time, s)."""
    traceparent: str = ""
    """W3C trace context of who published it."""
    tracestate: str = ""
    contract: int = 0
    """The version of the payload contract it was checked against; 0: there was none."""

    def values(self, seq: int | None = None) -> tuple[str, ...]:
        """The stream entry's values, in the order of ``FIELDS``; with another number, if one is given."""
        return (
            self.event_id,
            self.correlation_id,
            self.sender,
            self.to,
            dumped(self.payload),
            str(self.seq if seq is None else seq),
            str(self.attempt),
            f"{self.timestamp:.6f}",
            self.traceparent,
            self.tracestate,
            str(self.contract) if self.contract else "",
        )

    def fields(self) -> dict[str, str]:
        """The stream entry."""
        return {k: v for k, v in zip(FIELDS, self.values(), strict=True) if v or k == "payload"}


def dumped(payload: Json) -> str:
    """A payload as compact JSON. Raises ValueError for what JSON cannot say, such as NaN."""
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def new_id() -> str:
    """An id that no other event has."""
    return uuid.uuid4().hex


def derived_id(*parts: str | int) -> str:
    """An id that depends on nothing but the parts: a handler that runs again sends the same events again."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def decode(entry_id: str, fields: Mapping[bytes, bytes], stream: str = "") -> Event:
    """Read a stream entry, one made by hand included: missing ids are assigned, a payload that is no JSON is text.

    Args:
        entry_id: the entry's id in its stream; what is assigned depends on it, so that it is the same at every read.
        fields: as Redis has them.
        stream: the name of the stream.

    Raises:
        Undecodable: there is no payload, a text is not UTF-8, or a number is none.
    """
    try:
        text = {k.decode(): v.decode() for k, v in fields.items()}
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8: {error}", repr(fields)) from None
    if "payload" not in text:
        raise Undecodable("no payload field", text)
    own = text.get("event_id") or f"hand-{derived_id(stream, entry_id)}"
    try:
        return Event(
            to=text.get("to", ""),
            payload=_payload(text["payload"]),
            sender=text.get("from") or OPERATOR,
            correlation_id=text.get("correlation_id") or own,
            event_id=own,
            seq=int(text.get("seq") or 0),
            attempt=int(text.get("attempt") or 1),
            timestamp=float(text.get("timestamp") or int(entry_id.partition("-")[0]) / 1e3),
            traceparent=text.get("traceparent", ""),
            tracestate=text.get("tracestate", ""),
            contract=int(text.get("contract") or 0),
        )
    except ValueError as error:
        raise Undecodable(f"seq, attempt, contract or timestamp is not a number: {error}", text) from None


def _payload(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def prepared(event: Event, at: float) -> Event:
    """The event with ids and time filled in."""
    own = event.event_id or new_id()
    return replace(event, event_id=own, correlation_id=event.correlation_id or own, timestamp=event.timestamp or at)
