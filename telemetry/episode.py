"""A sampled episode as a list of decisions, for people to read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp

from runtime.records import (
    AnyRecord,
    Decided,
    DecisionRecord,
    EpisodeEnded,
    EpisodeOpened,
    Fault,
    Json,
    ModelCalled,
    Observed,
    Rewarded,
    Sent,
    ToolAnswered,
    ToolCall,
)


@dataclass(slots=True)
class Decision:
    """One agent's turn: what it saw, what it called, what came back and what that was worth."""

    agent: str
    turn: int
    observation: str = ""
    call: str = ""
    probability: float | None = None
    """Of the call, 0 to 1."""
    answers: list[str] = field(default_factory=list[str])
    failed: bool = False
    """A call was not carried out, or its answer not accepted."""
    cost_usd: float = 0.0
    sent: list[str] = field(default_factory=list[str])
    tokens: int = 0
    rewards: list[Rewarded] = field(default_factory=list[Rewarded])

    @property
    def paid(self) -> float:
        """Sum of the terms' values that are there, in their unit."""
        return sum(r.value for r in self.rewards if r.value is not None)

    @property
    def reasons(self) -> str:
        """Each term's value, or why it is missing."""
        return ", ".join(map(_reason, self.rewards))


@dataclass(frozen=True, slots=True)
class EpisodeStory:
    """An episode: what it was about, its decisions in their order, and how it ended."""

    opened: EpisodeOpened | None
    decisions: Sequence[Decision]
    ended: EpisodeEnded | None

    @property
    def title(self) -> str:
        """One line: scenario, return, end."""
        scenario = self.opened.scenario if self.opened else "unknown scenario"
        paid = sum(d.paid for d in self.decisions)
        return f"{scenario}: return {paid:+.2f}, {self.end}, {len(self.decisions)} decisions"

    @property
    def end(self) -> str:
        """How it ended, in a word."""
        if self.ended is None:
            return "unfinished"
        return "cut" if self.ended.truncated else "success" if self.ended.success else "failure"


def story(records: Sequence[AnyRecord]) -> EpisodeStory:
    """Gather an episode's records by decision, in the order in which the decisions began."""
    decisions: dict[tuple[str, int], Decision] = {}
    for record in records:
        if isinstance(record, DecisionRecord):
            key = (record.agent, record.turn)
            _add(decisions.setdefault(key, Decision(*key)), record)
    opened = next((r for r in records if isinstance(r, EpisodeOpened)), None)
    ended = next((r for r in records if isinstance(r, EpisodeEnded)), None)
    return EpisodeStory(opened, list(decisions.values()), ended)


def story_text(episode: EpisodeStory) -> str:
    """The episode as plain text."""
    return "\n".join(_text_lines(episode))


def call_text(call: ToolCall) -> str:
    """A call as a person would write it: ``tool(name="value")``."""
    return f"{call.tool}({', '.join(f'{key}={short_json(value)}' for key, value in call.args.items())})"


def short_json(value: Json) -> str:
    """A value as one line of JSON; text on its own stays as it is written there."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _add(decision: Decision, record: DecisionRecord) -> None:
    match record:
        case Observed():
            decision.observation = record.text
        case Decided():
            decision.call, decision.probability = call_text(record.call), _chosen(record)
        case ToolAnswered():
            decision.answers.append(_answer(record))
            decision.failed |= not record.ok
            decision.cost_usd += record.cost_usd
        case ModelCalled():
            decision.tokens += record.tokens_in + record.tokens_out
        case Sent():
            decision.sent.append(f"to {record.to}: {short_json(record.payload)}")
        case Rewarded():
            decision.rewards.append(record)
        case _:
            pass


def _chosen(decided: Decided) -> float | None:
    return None if decided.logp is None else exp(decided.logp)


def _answer(answered: ToolAnswered) -> str:
    return short_json(answered.value) if answered.fault is None else _fault(answered.fault)


def _fault(fault: Fault) -> str:
    place = f" at {fault.path}" if fault.path else ""
    return f"{fault.code}{place}: {fault.message}"


def _reason(rewarded: Rewarded) -> str:
    if rewarded.value is None:
        return f"{rewarded.term} missing ({rewarded.missing or 'no reason given'})"
    return f"{rewarded.term} {rewarded.value:+.2f}"


def _text_lines(episode: EpisodeStory) -> Iterator[str]:
    yield episode.title
    for decision in episode.decisions:
        yield ""
        yield f"{decision.agent}, turn {decision.turn}: {decision.call}"
        yield from (f"  saw    {line}" for line in decision.observation.splitlines())
        yield from (f"  got    {answer}" for answer in decision.answers)
        yield from (f"  sent   {message}" for message in decision.sent)
        if decision.rewards:
            yield f"  paid   {decision.paid:+.2f} ({decision.reasons})"
