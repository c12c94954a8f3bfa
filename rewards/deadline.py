"""Terms with a time limit: each judgement runs in a thread of its own, and is missing when its time is up.

A thread works in any process, in worker threads, and while a C library waits; it costs some 0.1 ms, so only terms that
say ``timeout_s`` get one. A thread that hangs cannot be ended: it is left behind, as a daemon, and after a few of them
the term is not asked again until one comes back.
"""

import threading
from typing import Any

from runtime.errors import RewardFault
from runtime.types import RewardTerm

MOST_HANGING = 8
"""Threads of one term that may hang at a time: more of them would eat the process up."""
_HANGING: dict[str, list[threading.Thread]] = {}
"""Threads left behind, by term; of this process alone."""


def called(term: RewardTerm, view: Any) -> Any:
    """What the term says of a view. Raises what it raises, and RewardFault when its time is up."""
    if term.timeout_s is None:
        return term.function(view)
    hanging = [t for t in _HANGING.get(term.name, ()) if t.is_alive()]
    _HANGING[term.name] = hanging
    if len(hanging) >= MOST_HANGING:
        raise RewardFault(f"term {term.name} is not asked: {len(hanging)} earlier judgements still hang")
    return _within(term, view, term.timeout_s, hanging)


def _within(term: RewardTerm, view: Any, seconds: float, hanging: list[threading.Thread]) -> Any:
    said: list[Any] = []
    raised: list[Exception | SystemExit] = []

    def judge() -> None:
        try:
            said.append(term.function(view))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - raised again where it is waited for
            raised.append(fault)

    thread = threading.Thread(target=judge, name=f"judging {term.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not said:
        hanging.append(thread)
        raise RewardFault(f"term {term.name} took longer than {seconds:g} s")
    return said[0]
