"""Sums over finished episodes, kept where they are played and fetched once an iteration."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from envs.session import Session
from runtime.records import Decided, ModelCalled, Record, Rewarded, ToolAnswered, ToolCalled, billed
from runtime.types import AgentId

KEPT_RETURNS = 4096
"""Returns kept for a histogram and their standard deviation; more are counted, not kept."""

LOOKED_AT = 250
"""Episodes whose decisions' rewards are kept for a histogram: enough for its shape, and all of them would cost time."""


@dataclass
class Tally:
    """What happened in some episodes of a team."""

    episodes: int = 0
    successes: int = 0
    steps: int = 0
    """Decisions, all agents together."""
    cost_usd: float = 0.0
    tokens: int = 0
    """Tokens that language models read and wrote."""
    cached: int = 0
    """Replies of models that had been given before, and cost nothing."""
    missing: int = 0
    """Episodes with a reward that is missing."""
    returns: list[float] = field(default_factory=list[float])
    """Team returns, in the reward terms' unit."""
    calls: Counter[tuple[AgentId, str]] = field(default_factory=Counter[tuple[AgentId, str]])
    """Calls by agent and tool."""
    invalid: Counter[AgentId] = field(default_factory=Counter[AgentId])
    repeated: int = 0
    """Calls that an agent had made in that episode before, arguments included."""
    written: int = 0
    """Characters of the arguments and messages that agents wrote."""
    terms: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Sum of each reward term."""
    own: dict[tuple[AgentId, str], float] = field(default_factory=lambda: defaultdict(float))
    """The part of it that single agents were paid, not everybody."""
    rewards: dict[AgentId, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    """What each agent's decisions brought, all terms together, for a histogram."""
    missing_terms: Counter[str] = field(default_factory=Counter[str])
    """How often each term was missing, and the reason last seen in ``why``."""
    why: dict[str, str] = field(default_factory=dict[str, str])
    sample: Sequence[Record] = ()
    """The records of one episode."""

    def add(self, session: Session, team_return: float) -> None:
        """Count a finished episode in."""
        self.episodes += 1
        self.successes += session.success
        if math.isnan(team_return):
            self.missing += 1
        elif len(self.returns) < KEPT_RETURNS:
            self.returns.append(team_return)
        made: set[tuple[AgentId, str, str]] = set()
        for record in session.records:
            self._add_record(record)
            if isinstance(record, ToolCalled):
                self._add_call(record, made)
        if self.episodes <= LOOKED_AT:
            self._keep_rewards(session.records)
        if not self.sample:
            self.sample = tuple(session.records)

    def _add_record(self, record: Record) -> None:
        usd, tokens = billed(record)
        self.cost_usd += usd
        self.tokens += tokens
        self.cached += isinstance(record, ModelCalled | Rewarded) and record.cached
        if isinstance(record, Decided):
            self.steps += 1
            self.calls[record.agent, record.call.tool] += 1
        elif isinstance(record, ToolAnswered):
            self.invalid[record.agent] += not record.ok
        elif isinstance(record, Rewarded):
            if record.value is None:
                self.missing_terms[record.term] += 1
                self.why[record.term] = record.missing
            else:
                self.terms[record.term] += record.value
                if record.scope == "agent":
                    self.own[record.agent, record.term] += record.value

    def _keep_rewards(self, records: Sequence[Record]) -> None:
        paid: dict[tuple[AgentId, int], float] = defaultdict(float)
        for record in records:
            if isinstance(record, Rewarded):
                paid[record.agent, record.turn] += math.nan if record.value is None else record.value
        for (agent, _), value in paid.items():
            if not math.isnan(value):
                self.rewards[agent].append(value)

    def paid_to(self, agent: AgentId) -> dict[str, float]:
        """Sum of each reward term as the agent was paid it: what went to everybody, and to itself."""
        others: dict[str, float] = defaultdict(float)
        for (whom, term), value in self.own.items():
            others[term] += value if whom != agent else 0.0
        return {term: value - others[term] for term, value in self.terms.items()}

    def _add_call(self, called: ToolCalled, made: set[tuple[AgentId, str, str]]) -> None:
        args = repr(called.args) if called.args else ""
        call = (called.agent, called.tool, args)
        self.repeated += call in made
        self.written += len(args)
        made.add(call)

    @classmethod
    def total(cls, tallies: Iterable["Tally"]) -> Self:
        """The sum of several."""
        out = cls()
        for t in tallies:
            out.episodes += t.episodes
            out.successes += t.successes
            out.steps += t.steps
            out.cost_usd += t.cost_usd
            out.tokens += t.tokens
            out.cached += t.cached
            out.missing += t.missing
            out.repeated += t.repeated
            out.written += t.written
            out.returns += t.returns
            out.calls.update(t.calls)
            out.invalid.update(t.invalid)
            out.missing_terms.update(t.missing_terms)
            out.why.update(t.why)
            for name, value in t.terms.items():
                out.terms[name] += value
            for key, value in t.own.items():
                out.own[key] += value
            for agent, values in t.rewards.items():
                out.rewards[agent] += values[: KEPT_RETURNS - len(out.rewards[agent])]
            out.sample = out.sample or t.sample
        return out
