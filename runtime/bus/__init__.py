"""The event bus: at-least-once delivery over Redis Streams, effects exactly once through the store.

    bus = EventBus("embedded:runs/redis", "sqlite:///runs/store.db", team="shop", roles=("ear", "voice", "caller"))
    bus.start()                                                    # relay and upkeep, in threads of this process
    bus.publish(Event(to="ear", sender="caller", correlation_id="s1", payload={"heard": "bonjour"}))

    def handle(delivery: Delivery) -> None:                        # runs in the consumer's thread, one call at a time
        state = delivery.state() or {"calls": 0}                   # the snapshot of (role, session)
        delivery.keep({"calls": state["calls"] + 1})               # the new state
        delivery.send("voice", {"greet": delivery.event.payload})  # an outgoing event
        delivery.record(a_record)                                  # a record for the history

    owner = bus.own("ear")                                         # the epoch: whoever owned it before is fenced
    consumer = bus.consumer("role", "ear", "ear-0", handle, Reading(owner=owner))
    consumer.start(); ...; consumer.stop()                         # a thread, or consumer.step() in a loop of one's own
    bus.stop()

What the handler puts into the ``Delivery`` is committed together, in one transaction with the note that the event was
had, after the handler has returned; then the event is acknowledged. When the handler raises, nothing of it is kept and
the event comes again, up to ``BusSettings.max_attempts`` times; then it is a dead letter. ``delivery.key`` is the
idempotency key for outside effects. A handler may be run again for an event whose commit was lost: it must not keep
state of its own beyond the ``Delivery`` unless it can load it anew (``Delivery.state``) after ``Delivery.again``.

The bus is made of threads, not of coroutines: SQLite, a handler that computes and Ray's synchronous actors all block,
and redis-py's synchronous client costs half of what the asynchronous one does. An asyncio program calls ``publish``
in an executor and gives the consumer a thread.

"Nothing lost" is promised for every event that ``publish`` accepted, "once" for what goes through the ``Delivery`` and
for tools that honour the idempotency key.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.bus.bus import EventBus
    from runtime.bus.consumer import Consumer, Reading
    from runtime.bus.contracts import Agreement, Agreements, check_fit
    from runtime.bus.delivery import Delivery
    from runtime.bus.errors import BusError, ContractBroken, Misfit, NoSuchRole, Overloaded, Undecodable
    from runtime.bus.event import Event
    from runtime.bus.settings import BusSettings, Safety
    from runtime.errors import Fenced
    from runtime.store.owners import Owner

_LAZY = {
    "Agreement": "runtime.bus.contracts",
    "Agreements": "runtime.bus.contracts",
    "BusError": "runtime.bus.errors",
    "BusSettings": "runtime.bus.settings",
    "Consumer": "runtime.bus.consumer",
    "ContractBroken": "runtime.bus.errors",
    "Delivery": "runtime.bus.delivery",
    "Event": "runtime.bus.event",
    "EventBus": "runtime.bus.bus",
    "Fenced": "runtime.errors",
    "Misfit": "runtime.bus.errors",
    "NoSuchRole": "runtime.bus.errors",
    "Overloaded": "runtime.bus.errors",
    "Owner": "runtime.store.owners",
    "Reading": "runtime.bus.consumer",
    "Safety": "runtime.bus.settings",
    "Undecodable": "runtime.bus.errors",
    "check_fit": "runtime.bus.contracts",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a process that only passes events on needs no Redis client."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Agreement",
    "Agreements",
    "BusError",
    "BusSettings",
    "Consumer",
    "ContractBroken",
    "Delivery",
    "Event",
    "EventBus",
    "Fenced",
    "Misfit",
    "NoSuchRole",
    "Overloaded",
    "Owner",
    "Reading",
    "Safety",
    "Undecodable",
    "check_fit",
]
