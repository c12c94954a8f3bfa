"""Is the same scenario, seed and play the same episode: again, beside another one, and after it?"""

import copy
import dataclasses
import pickle
from collections.abc import Iterator
from random import Random

from envs.checks.findings import Finding
from envs.checks.subject import Subject, at_random, step
from envs.session import Session
from runtime.records import RECORD, AnyRecord, Record
from runtime.types import Scenario

_REPEATED = 3
"""Scenarios that are played again and again."""
_STATELESS = "keep all state in the world, made afresh by Team.world; draw chance from Random(scenario.seed)"


def _wrong(message: str, where: str, remedy: str, check: str = "repeat") -> Finding:
    return Finding(check, ok=False, message=message, where=where, remedy=remedy)


def repeats(subject: Subject) -> Iterator[Finding]:
    """Again, interleaved with others, and on a scenario played before: the records are equal."""
    found = list(subject.scenarios(_REPEATED))
    before = [copy.deepcopy(s) for s in found]
    alone = [subject.play(s, at_random, chance=k).records for k, s in enumerate(found)]
    for k, scenario in enumerate(found):
        where = f"scenario {scenario.id}"
        if _changed(scenario, before[k]):
            yield _wrong("the world changes the scenario it was made from", where, "copy what the world is to change")
        again = subject.play(copy.deepcopy(before[k]), at_random, chance=k).records
        difference = _difference(alone[k], again)
        if difference:
            yield _wrong(f"played again with the same calls, {difference}", where, _STATELESS)
            return
    sessions = _interleaved(subject, [copy.deepcopy(s) for s in before])
    for k, session in enumerate(sessions):
        difference = _difference(alone[k], session.records)
        if difference:
            where = f"scenario {found[k].id}"
            yield _wrong(f"played beside other sessions, {difference}: they share state", where, _STATELESS)


def _changed(now: Scenario, before: Scenario) -> bool:
    return dataclasses.asdict(now) != dataclasses.asdict(before)


def _interleaved(subject: Subject, found: list[Scenario]) -> list[Session]:
    sessions = [subject.open(s) for s in found]
    chances = [Random(k) for k in range(len(found))]
    while not all(s.ended for s in sessions):
        for session, rng in zip(sessions, chances, strict=True):
            if not session.ended:
                step(session, at_random, rng)
    return sessions


def _difference(one: list[Record], other: list[Record]) -> str:
    for a, b in zip(one, other, strict=False):
        if _shown(a) != _shown(b):
            return f"{_kind(a)} differs: {_shown(a)[:80]} … {_shown(b)[:80]}"
    return "" if len(one) == len(other) else f"it has {len(other)} records in place of {len(one)}"


def _kind(record: Record) -> str:
    return f"{getattr(record, 'agent', '')} {getattr(record, 'kind', '')}".strip()


def _shown(record: Record) -> str:
    return str(record.model_dump(exclude={"at", "correlation_id"}))


def portable(subject: Subject) -> Iterator[Finding]:
    """Observations can go to another process, and records into a file and back."""
    for scenario in subject.scenarios(_REPEATED):
        session, rng = subject.open(scenario), Random(0)
        while not session.ended:
            for agent in session.to_act:
                try:
                    pickle.loads(pickle.dumps(session.observe(agent)))  # noqa: S301 - what was dumped right here
                except Exception as error:  # noqa: BLE001 - pickling calls code of any class
                    message = f"an observation cannot be pickled: {error}"
                    yield _wrong(message, f"role {agent}", "show plain JSON", "portable")
            subject.step(session, at_random, rng)
        for record in session.records:
            yield from _through_json(record)


def _through_json(record: Record) -> Iterator[Finding]:
    try:
        back: AnyRecord = RECORD.validate_json(RECORD.dump_json(record))  # pyright: ignore[reportArgumentType]
        same = back == record
    except ValueError as error:
        yield _wrong(f"{_kind(record)} is not JSON: {error}", _source(record), "answer with plain JSON", "portable")
        return
    if not same:
        message = f"{_kind(record)} is another one when read back from JSON"
        yield _wrong(message, _source(record), "lists in place of tuples, text keys, finite numbers", "portable")


def _source(record: Record) -> str:
    tool = getattr(record, "tool", "")
    return f"tool {tool}" if tool else f"role {getattr(record, 'agent', '')}"
