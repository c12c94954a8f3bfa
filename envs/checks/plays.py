"""Does a team survive being played: well, badly, exhaustively, and with nonsense?"""

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any, cast

from envs.checks.findings import Fail, Finding
from envs.checks.subject import BUGS, LONGEST, Chooser, NoLegalCall, Subject, at_random, players
from envs.session import Session
from runtime.records import Decided, EpisodeEnded, Json, Observed, Record, ToolAnswered, ToolCall
from runtime.tools import MAX_ANSWER_CHARS
from runtime.types import Observation, Scenario, Tool

_UNFIT = frozenset({"malformed", "unknown_tool", "bad_arguments", "illegal", "over_budget"})
"""Faults that a legal candidate must not meet."""
MOST_CHARACTERS = 1_000_000
"""Of an answer: a hundred times what any agent is shown of it, made and thrown away in every episode."""


def _wrong(check: str, message: str, where: str = "", remedy: str = "") -> Finding:
    return Finding(check, ok=False, message=message, where=where, remedy=remedy)


def plays(subject: Subject) -> Iterator[Finding]:
    """Every turn has a legal call, legal calls are carried out, answers obey their schemas, and episodes can end."""
    ended = False
    for name, choose in players(subject.team).items():
        for index, scenario in enumerate(subject.scenarios()):
            where = f"scenario {scenario.id}, {name} play"
            try:
                session = subject.play(scenario, choose, chance=index)
            except NoLegalCall as error:
                message = f"role {error.agent} comes to its turn {error.turn} with no legal call"
                yield _wrong(
                    "play", message, where, "a call that ends its part must stay legal: repeats, calls=, budget"
                )
                continue
            ended |= not session.truncated
            yield from _judged(session, where)
    yield from _bugs(subject)
    if not ended:
        cut = f"max_turns {subject.given.max_turns}" if subject.given.max_turns <= LONGEST else f"{LONGEST:,} decisions"
        message = f"no play ends an episode: all are cut at {cut}"
        yield _wrong("play", message, remedy="raise max_turns, or let a reachable call or end_round end the episode")


def _judged(session: Session, where: str) -> Iterator[Finding]:
    for record in session.records:
        if isinstance(record, ToolAnswered) and record.fault is not None:
            fault = record.fault
            if fault.code in _UNFIT:
                yield _wrong(
                    "masks", f"a legal call of {record.tool} is refused: {fault.message}", where, "correct the call"
                )
            elif fault.code == "bad_answer":
                message = f"its answer breaks its own schema at {fault.path}: {fault.message}"
                yield _wrong("answers", message, f"tool {record.tool}", "correct the return type, or loose=True")
        elif isinstance(record, ToolAnswered):
            yield from _endless(record)
        elif isinstance(record, EpisodeEnded):
            yield from _ending(session, record, where)


def _endless(record: ToolAnswered) -> Iterator[Finding]:
    answer: Json = record.value
    value = cast("dict[str, Json]", answer) if isinstance(answer, dict) else {}
    length = value.get("characters") if "truncated" in value else None
    if isinstance(length, int) and length > MOST_CHARACTERS:
        message = f"its answer has {length:,} characters, of which agents see the first {MAX_ANSWER_CHARS:,}"
        yield _wrong("answers", message, f"tool {record.tool}", "answer with what is needed, or page by page")


def _ending(session: Session, record: EpisodeEnded, where: str) -> Iterator[Finding]:
    try:
        json.dumps(dict(record.outcome), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield _wrong("play", f"the outcome is not JSON: {error}", where, "plain values in World.outcome()")
        return
    if not session.truncated and session.world.outcome() != (session.outcome, session.success):
        yield _wrong("play", "outcome() answers another time when asked twice", where, "let outcome() only look")


def _bugs(subject: Subject) -> Iterator[Finding]:
    for raised in subject.raised:
        if isinstance(raised.error, BUGS):
            text = f"{type(raised.error).__name__}: {raised.error}"
            remedy = "correct it; to tell the agent something, raise ValueError or another error of your own"
            yield _wrong("answers", f"tool {raised.tool} fails on {_args(raised.args)}: {text}", raised.where, remedy)
    subject.raised.clear()


def _args(args: dict[str, Any]) -> str:
    return json.dumps(args, default=str)[:80]


def baselines(subject: Subject) -> Iterator[Finding]:
    """Baselines that can be played make legal calls only."""
    for name, baseline in subject.given.baselines.items():
        policies = baseline.policies
        if policies is None:
            continue
        for index, scenario in enumerate(subject.scenarios()):
            session = subject.play(scenario, lambda seen, rng, by=policies: by[seen.agent](seen, rng), chance=index)
            for record in session.records:
                fault = record.fault if isinstance(record, ToolAnswered) else None
                if isinstance(record, ToolAnswered) and fault is not None and fault.code in _UNFIT:
                    message = f"{record.agent}'s call of {record.tool or 'nothing'} is refused: {fault.message}"
                    remedy = "let it choose among the candidates that the mask leaves"
                    yield _wrong("baselines", message, f"baseline {name}, scenario {scenario.id}", remedy)


# -- what must be refused


def masks(subject: Subject) -> Iterator[Finding]:
    """Calls that are masked are answered with an error, and counted."""

    def sometimes_masked(seen: Observation, rng: Random) -> int:
        masked = [i for i, ok in enumerate(seen.mask) if not ok]
        return rng.choice(masked) if masked and rng.random() < 0.5 else at_random(seen, rng)

    for index, scenario in enumerate(subject.scenarios()):
        for records in _steps(subject, scenario, sometimes_masked, index):
            yield from _refusals(records)


def _refusals(records: list[Record]) -> Iterator[Finding]:
    seen = {r.decision_id: r for r in records if isinstance(r, Observed)}
    for record in (r for r in records if isinstance(r, Decided)):
        before, call = seen[record.decision_id], record.call
        place = next((i for i, c in enumerate(before.candidates) if c == call), None)
        if place is not None and not before.mask[place] and not _refused(records, record):
            message = f"a masked call of {call.tool} was carried out"
            yield _wrong("masks", message, f"role {record.agent}", "list each call once in calls=")


def _refused(records: list[Record], decided: Decided) -> bool:
    answers = (r for r in records if isinstance(r, ToolAnswered))
    return any(r.decision_id == decided.decision_id and r.fault is not None for r in answers)


def abuse(subject: Subject) -> Iterator[Finding]:
    """Whatever an agent says is answered, never raised, and every answered error is counted."""
    for index, scenario in enumerate(subject.scenarios()):
        session, rng = subject.open(scenario), Random(index)
        while not session.ended:
            try:
                subject.step(session, _vandal(subject), rng)
            except NoLegalCall:
                break
            except Fail as error:
                message = f"an agent's call raised out of the session: {error.cause}"
                yield _wrong("abuse", message, error.where, "let the world and its tools withstand it")
                break
        errors = sum(isinstance(r, ToolAnswered) and not r.ok for r in session.records)
        if errors != session.invalid.total():
            yield _wrong("abuse", f"{errors} errors were answered and {session.invalid.total()} counted", scenario.id)
    yield from _bugs(subject)


def _vandal(subject: Subject) -> Chooser:
    tools = list(subject.team.tools.values())

    def choose(seen: Observation, rng: Random) -> Any:
        nonsense = (*_NONSENSE, *_ill_typed(rng.choice(tools), rng)) if tools else _NONSENSE
        return rng.choice(nonsense) if rng.random() < 0.7 else at_random(seen, rng)

    return choose


_NONSENSE: tuple[Any, ...] = (
    "", "{", "null", "[]", "[" * 50, '{"tool": 3}', '{"tool": "no_such_tool"}', '{"tool": "x", "args": []}',
    '{"tool": "hand_over", "args": {"suspicion": "nobody"}}', '{"tool": "hand_back", "args": {"a": 1}}',
    -1, 10**9, None, 1.5, math.nan, [], {"tool": 1}, ToolCall(tool=""), ToolCall(tool="no_such_tool", args={"a": 1}),
)  # fmt: skip
"""What a language model may say, and what a broken policy may do."""

_ODD_VALUES: tuple[Any, ...] = (
    None,
    "",
    "x" * 2000,
    "; DROP TABLE orders",
    -1,
    2**70,
    1e308,
    math.inf,
    [],
    {},
    [[]],
    True,
)


def _ill_typed(tool: Tool, rng: Random) -> tuple[Any, ...]:
    names: list[str] = list(tool.input_schema.get("properties", {}))
    odd = {name: rng.choice(_ODD_VALUES) for name in names}
    return (
        ToolCall(tool=tool.name, args=odd),
        json.dumps({"tool": tool.name, "args": odd}),
        ToolCall(tool=tool.name, args={"no_such_argument": 1}),
        json.dumps({"tool": tool.name}),
    )


def _steps(subject: Subject, scenario: Scenario, choose: Chooser, chance: int) -> Iterator[list[Record]]:
    session, rng = subject.open(scenario), Random(chance)
    while not session.ended:
        try:
            yield subject.step(session, choose, rng)
        except NoLegalCall:
            return
