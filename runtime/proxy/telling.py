"""From an exchange to records: what a role saw, what it decided, what its tools answered."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from runtime.llm.model import CHARS_A_TOKEN
from runtime.proxy.asked import Asked, Called, case_of, value_of
from runtime.proxy.conversations import Conversation, Pending
from runtime.proxy.exchange import Exchange, Spent
from runtime.proxy.said import Said
from runtime.proxy.settings import RoleHint
from runtime.records import (
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Fault,
    Json,
    ModelCalled,
    Observed,
    Record,
    Sent,
    ToolAnswered,
    ToolCall,
    ToolCalled,
)
from runtime.seams import digest

ANSWER = "answer"
"""The call of an answer in words, where nobody has said which other one it stands for: so adapted teams call it too."""
USER = "user"
"""Who hears what a role says."""


def opening(exchange: Exchange, team: str) -> EpisodeOpened:
    """A conversation's first record. Its scenario is what it is about: the same for the same first message."""
    visible = case_of(exchange.asked.spoken)
    return EpisodeOpened(
        correlation_id=exchange.found.id,
        at=exchange.at,
        team=team,
        scenario=f"proxy-{digest(sorted(visible.items())):016x}",
        seed=0,
        version=exchange.found.version,
        case={"visible": visible, "truth": {}, "seed": 0},
    )


def ending(
    found: Conversation, at: float, outcome: Mapping[str, Json], *, success: bool, truncated: bool
) -> EpisodeEnded:
    """A conversation's last record."""
    return EpisodeEnded(correlation_id=found.id, at=at, outcome=outcome, success=success, truncated=truncated)


def answers(found: Conversation, asked: Asked, at: float) -> list[Record]:
    """What tools answered since the last request: calls that were pending, and are no more."""
    made: list[Record] = []
    for message in asked.spoken:
        pending = found.pending.pop(message.answers, None) if message.role == "tool" else None
        if pending is not None:
            who = _stamp(found, pending.role, pending.turn, at)
            made.append(ToolCalled(**who, tool=pending.call.tool, args=pending.call.args))
            made.append(ToolAnswered(**who, tool=pending.call.tool, ok=True, value=value_of(message.text)))
    return made


def unanswered(exchange: Exchange, spent: Spent, at: float) -> Record:
    """A model was asked and nothing came of it."""
    return ModelCalled(**_turn(exchange, at), **_cost(spent, (0, 0)))


def decisions(exchange: Exchange, said: Said, spent: Spent, at: float) -> list[Record]:
    """What a role decided: a call, several at once, or words. Counts its turns, and remembers who called what."""
    tokens = said.tokens or (_estimated(exchange.seen), _estimated(said.text + str([c.call for c in said.calls])))
    made: list[Record] = [ModelCalled(**_turn(exchange, at), **_cost(spent, tokens))]
    for called in said.calls or (None,):
        who = _turn(exchange, at)
        made.append(Observed(**who, text=exchange.seen))
        if called is None:
            made.append(Decided(**who, call=in_words(said.text, exchange.hint)))
        else:
            made += _called(exchange.found, who, called)
        if said.text and called in (None, *said.calls[:1]):
            made.append(Sent(**who, to=USER, payload=said.text))
        exchange.found.turns[exchange.role] += 1
    return made


def in_words(text: str, hint: RoleHint) -> ToolCall:
    """The call that an answer in words stands for. Words that are a JSON object are that call's arguments."""
    if hint.text in ("", ANSWER):
        return ToolCall(tool=ANSWER, args={"text": text})
    said = value_of(text)
    return ToolCall(tool=hint.text, args=cast("dict[str, Json]", said) if isinstance(said, dict) else {})


def resumed(found: Conversation, records: Sequence[Record], role: str = "", ours: str = "") -> None:
    """Take up a conversation where its records end.

    Args:
        found: the conversation, as new.
        records: what is on record of it.
        role: the role that a trained version may play; empty: none.
        ours: that version, as PROVIDER/MODEL.
    """
    found.opened = any(isinstance(r, EpisodeOpened) for r in records)
    for record in records:
        if isinstance(record, Decided):
            found.turns[record.agent] = record.turn + 1
        if isinstance(record, ModelCalled) and record.agent == role and record.model and not record.degraded:
            found.served = record.model == ours


def _called(found: Conversation, who: dict[str, Any], called: Called) -> Iterator[Record]:
    if not called.readable:
        fault = Fault(code="malformed", message="the arguments are no JSON object")
        yield Decided(**who, call=ToolCall(tool=""))
        yield ToolAnswered(**who, tool=called.call.tool, ok=False, fault=fault)
        return
    yield Decided(**who, call=called.call)
    found.pending[called.id] = Pending(who["agent"], who["turn"], called.call)
    found.authors[called.id] = who["agent"]


def _turn(exchange: Exchange, at: float) -> dict[str, Any]:
    """What every record of the role's next turn says."""
    return _stamp(exchange.found, exchange.role, exchange.found.turns[exchange.role], at)


def _stamp(found: Conversation, role: str, turn: int, at: float) -> dict[str, Any]:
    return {"correlation_id": found.id, "at": at, "agent": role, "turn": turn}


def _cost(spent: Spent, tokens: tuple[int, int]) -> dict[str, Any]:
    return {
        "tokens_in": tokens[0],
        "tokens_out": tokens[1],
        "ms": spent.ms,
        "degraded": spent.degraded,
        "model": spent.model,
        "attempts": spent.attempts,
    }


def _estimated(text: str) -> int:
    return -(-len(text) // CHARS_A_TOKEN)
