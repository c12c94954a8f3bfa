"""A sampled episode as a list of decisions, for people to read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
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
    billed,
)


@dataclass(frozen=True, slots=True)
class Option:
    """A call that an agent could have made."""

    call: str
    probability: float | None
    """0 to 1; None where the policy has none, or did not say."""
    legal: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from a call."""

    text: str
    ok: bool
    before_coercion: str = ""
    """What the tool had answered, where that was made to fit its schema."""


@dataclass(slots=True)
class Decision:
    """One agent's turn: what it saw, what it called, what came back and what that was worth."""

    agent: str
    turn: int
    began: float
    """When what came before it in the episode was over (Unix time, s)."""
    ended: float
    """When the last of it happened, pay apart (Unix time, s)."""
    observation: str = ""
    options: Sequence[Option] = ()
    call: str = ""
    probability: float | None = None
    """Of the call, 0 to 1."""
    answers: list[Answer] = field(default_factory=list[Answer])
    cost_usd: float = 0.0
    sent: list[str] = field(default_factory=list[str])
    models: list[str] = field(default_factory=list[str])
    """Language models that were asked, and how long each took."""
    degraded: bool = False
    """A fallback answered in a model's place, or nobody."""
    tokens_in: int = 0
    tokens_out: int = 0
    rewards: list[Rewarded] = field(default_factory=list[Rewarded])

    @property
    def failed(self) -> bool:
        """A call was not carried out, or its answer not accepted."""
        return not all(answer.ok for answer in self.answers)

    @property
    def missing(self) -> bool:
        """A reward term had nothing to say, or failed."""
        return any(r.value is None for r in self.rewards)

    @property
    def seconds(self) -> float:
        """From the end of what came before to its own end, s: thinking, tools, and waiting for either."""
        return max(0.0, self.ended - self.began)

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
        return "unfinished" if self.ended is None else end_text(self.ended)


def story(records: Sequence[AnyRecord]) -> EpisodeStory:
    """Gather an episode's records by decision, in the order in which the decisions began."""
    decisions: dict[tuple[str, int], Decision] = {}
    latest = records[0].at if records else 0.0
    for record in records:
        if isinstance(record, DecisionRecord):
            key = (record.agent, record.turn)
            decision = decisions.setdefault(key, Decision(*key, began=latest, ended=latest))
            _add(decision, record)
            if not isinstance(record, Rewarded):
                decision.ended = max(decision.ended, record.at)
        latest = max(latest, record.at)
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


def chosen_text(decided: Decided) -> str:
    """The call that was chosen, or that there is none to be read."""
    return call_text(decided.call) if decided.call.tool else "nothing that can be read"


def fault_text(fault: Fault) -> str:
    """What was wrong, and where."""
    place = f" at {fault.path}" if fault.path else ""
    return f"{fault.code}{place}: {fault.message}"


def missing_text(rewarded: Rewarded) -> str:
    """A term without a value, and why it has none."""
    return f"{rewarded.term} missing ({rewarded.missing or 'no reason given'})"


def end_text(ended: EpisodeEnded) -> str:
    """How an episode ended, in a word."""
    return "cut" if ended.truncated else "success" if ended.success else "failure"


def _add(decision: Decision, record: DecisionRecord) -> None:
    match record:
        case Observed():
            decision.observation = record.text
            decision.options = [
                Option(call_text(c), None, legal, chosen=False)
                for c, legal in zip(record.candidates, record.mask or repeat(True), strict=False)
            ]
        case Decided():
            _decide(decision, record)
        case ToolAnswered():
            raw = "" if record.raw is None else short_json(record.raw)
            decision.answers.append(Answer(_answer(record), record.ok, raw))
            decision.cost_usd += record.cost_usd
        case ModelCalled():
            decision.tokens_in += record.tokens_in
            decision.tokens_out += record.tokens_out
            decision.cost_usd += billed(record)[0]
            decision.degraded |= record.degraded
            decision.models.append(f"{record.model or 'no model'}, {record.ms:.0f} ms")
        case Sent():
            decision.sent.append(f"to {record.to}: {short_json(record.payload)}")
        case Rewarded():
            decision.rewards.append(record)
            decision.cost_usd += billed(record)[0]
        case _:
            pass


def _decide(decision: Decision, decided: Decided) -> None:
    decision.call = chosen_text(decided)
    decision.probability = None if decided.logp is None else exp(decided.logp)
    odds: Sequence[float | None] = decided.probabilities or ()
    if len(odds) != len(decision.options):
        odds = [None] * len(decision.options)
    decision.options = [
        replace(option, probability=p, chosen=option.call == decision.call)
        for option, p in zip(decision.options, odds, strict=True)
    ]


def _answer(answered: ToolAnswered) -> str:
    return short_json(answered.value) if answered.fault is None else fault_text(answered.fault)


def _reason(rewarded: Rewarded) -> str:
    if rewarded.value is None:
        return missing_text(rewarded)
    return f"{rewarded.term} {rewarded.value:+.2f}"


def _text_lines(episode: EpisodeStory) -> Iterator[str]:
    yield episode.title
    for decision in episode.decisions:
        yield ""
        yield f"{decision.agent}, turn {decision.turn}: {decision.call}"
        yield from (f"  saw    {line}" for line in decision.observation.splitlines())
        yield from (f"  got    {answer.text}" for answer in decision.answers)
        yield from (f"  sent   {message}" for message in decision.sent)
        if decision.rewards:
            yield f"  paid   {decision.paid:+.2f} ({decision.reasons})"
