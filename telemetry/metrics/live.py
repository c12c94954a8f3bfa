"""What the records of a live team put into the instruments. One process counts for all: the one that follows them."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import fmean
from typing import Literal

from runtime.records import (
    AgentStarted,
    AnyRecord,
    Decided,
    DecisionRecord,
    EpisodeEnded,
    EpisodeOpened,
    Feedback,
    ModelCalled,
    Observed,
    Redelivered,
    Rewarded,
    StateChanged,
    ToolAnswered,
    ToolCalled,
    ToolUndone,
)
from runtime.store.history import Noted
from telemetry.episode import end_text
from telemetry.metrics.meters import Meters

WINDOW = 200
"""Decisions, or sessions, over which rewards and entropies are averaged: about as many as an evaluation's."""
REMEMBERED = 20_000
"""Sessions that are followed at once; of those that were left open longest ago, duration and reward are not counted."""
UNKNOWN = "none"
"""The label of a version that is not known."""
Phase = Literal["live", "serving"]


@dataclass(slots=True)
class _Turn:
    """A decision under way."""

    began: float
    """Unix time, s."""
    last: float
    tool: float | None = None
    """When its tool was called."""
    paid: float = 0.0
    missing: bool = False


@dataclass(slots=True)
class _Session:
    """What is known of a session so far."""

    version: str
    opened: float | None = None
    turns: dict[str, _Turn] = field(default_factory=dict[str, _Turn])
    """Each agent's last decision."""
    paid: float = 0.0
    judged: bool = False
    missing: bool = False


class LiveFeed:
    """Feeds a live team's instruments from its records.

    Args:
        meters: the instruments.
        phase: the ``phase`` label of step latencies.
        opening: finds the opening of a session that began before this feed did; None where there is none.
        version: a version's short name for labels, from that on record.
    """

    def __init__(
        self,
        meters: Meters,
        phase: Phase,
        opening: Callable[[str, str], EpisodeOpened | None],
        version: Callable[[str, str], str],
    ) -> None:
        self._meters, self._phase, self._opening, self._version = meters, phase, opening, version
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        self._windows: dict[tuple[str, ...], deque[float]] = defaultdict(lambda: deque(maxlen=WINDOW))
        self._started: set[str] = set()
        self._ending: dict[tuple[str, str], EpisodeEnded] = {}
        """Sessions that have ended, and whose last pay may still be to come: it stands behind the end."""

    def take(self, news: Sequence[Noted]) -> None:
        """Count what was committed. A session is counted with the news after its end, or when there are none."""
        ended, self._ending = self._ending, {}
        for noted in news:
            self._one(noted.team, noted.record)
        for (team, _), record in ended.items():
            self._end(team, record)

    def feedback(self, team: str, said: Feedback) -> None:
        """Count a reward from outside for a whole session."""
        if said.decision_id is not None:
            return
        known = self._sessions.get((team, said.correlation_id))
        opened = None if known else self._opening(team, said.correlation_id)
        version = known.version if known else self._version(team, opened.version) if opened else UNKNOWN
        self._rewarded(team, version, "feedback", said.value)

    def _one(self, team: str, record: AnyRecord) -> None:
        match record:
            case AgentStarted():
                self._start(record)
            case StateChanged():
                if record.after == "error":
                    self._meters.record("agent.failures", 1, agent_id=record.agent)
            case Redelivered():
                self._meters.record("agent.redeliveries", 1, agent_id=record.agent)
            case EpisodeOpened():
                session = self._begin(team, record)
                self._meters.record("session.opened", 1, team=team, version=session.version)
            case EpisodeEnded():
                self._ending[team, record.correlation_id] = record
            case Feedback():
                self.feedback(team, record)
            case ToolUndone():
                outcome = "ok" if record.ok else "failed"
                self._meters.record("tool.undone", 1, tool=record.tool, outcome=outcome)
            case DecisionRecord():
                self._step(self._session(team, record.correlation_id), record)
            case _:
                pass  # an agent that ends in order is not counted

    def _step(self, session: _Session, record: DecisionRecord) -> None:
        turn = session.turns.get(record.agent)
        if isinstance(record, Observed):
            self._over(record.agent, turn)
            session.turns[record.agent] = _Turn(record.at, record.at)
            return
        turn = turn or session.turns.setdefault(record.agent, _Turn(record.at, record.at))
        match record:
            case Rewarded():
                self._paid(session, turn, record)
                return
            case Decided():
                self._decided(record)
            case ModelCalled():
                self._asked(record)
            case ToolCalled():
                turn.tool = record.at
            case ToolAnswered():
                self._answered(record, turn.tool)
            case _:
                pass
        turn.last = record.at

    def _over(self, agent: str, turn: _Turn | None) -> None:
        """A decision is over, with all that it brought about."""
        if turn is None:
            return
        took = max(0.0, turn.last - turn.began)
        self._meters.record("agent.step.latency", 1000 * took, agent_id=agent, phase=self._phase)
        self._meters.record("gen_ai.invoke_agent.duration", took, agent_id=agent)
        if not turn.missing:
            mean = self._mean(("reward", agent), turn.paid)
            self._meters.record("agent.reward.value", mean, agent_id=agent)

    def _decided(self, record: Decided) -> None:
        self._meters.record("agent.decisions", 1, agent_id=record.agent)
        if record.probabilities:
            entropy = -sum(p * log(p) for p in record.probabilities if p > 0)
            mean = self._mean(("entropy", record.agent), entropy)
            self._meters.record("agent.policy.entropy", mean, agent_id=record.agent)

    def _asked(self, record: ModelCalled) -> None:
        meters, agent, model = self._meters, record.agent, record.model or UNKNOWN
        error = "degraded" if record.degraded else ""
        for direction, kind, count in (("in", "input", record.tokens_in), ("out", "output", record.tokens_out)):
            meters.record("llm.token.usage", count, agent_id=agent, direction=direction)
            meters.record("gen_ai.client.token.usage", count, gen_ai_request_model=model, gen_ai_token_type=kind)
        seconds = record.ms / 1000
        meters.record("gen_ai.client.operation.duration", seconds, gen_ai_request_model=model, error_type=error)
        meters.record("model.calls", 1, model=model, outcome=error or "answered")
        meters.record("model.retries", max(0, record.attempts - 1), model=model)
        meters.record("model.cost", record.cost_usd, model=model)
        meters.record("agent.cost", record.cost_usd, agent_id=agent, source="model")

    def _answered(self, record: ToolAnswered, called: float | None) -> None:
        meters, tool = self._meters, record.tool or UNKNOWN
        fault = record.fault.code if record.fault else ""
        if fault == "unknown_tool":  # whatever an agent made up is no label
            tool = UNKNOWN
        meters.record("tool.calls", 1, tool=tool, outcome=fault or "ok")
        meters.record("tool.cost", record.cost_usd, tool=tool)
        meters.record("agent.cost", record.cost_usd, agent_id=record.agent, source="tool")
        if called is not None:
            seconds = max(0.0, record.at - called)
            meters.record("gen_ai.execute_tool.duration", seconds, gen_ai_tool_name=tool, error_type=fault)

    def _paid(self, session: _Session, turn: _Turn, record: Rewarded) -> None:
        session.judged = True
        if record.value is None:
            session.missing = turn.missing = True
            self._meters.record("rl.reward.missing", 1)
            return
        turn.paid += record.value
        session.paid += record.value

    def _start(self, record: AgentStarted) -> None:
        self._meters.record("agent.starts", 1, agent_id=record.agent)
        self._meters.record("agent.restarts", int(record.correlation_id in self._started), agent_id=record.agent)
        self._meters.record("agent.cold_start", record.cold_start_ms, agent_id=record.agent)
        self._started.add(record.correlation_id)

    def _begin(self, team: str, record: EpisodeOpened) -> _Session:
        version = self._version(team, record.version) or UNKNOWN
        session = self._sessions[team, record.correlation_id] = _Session(version, record.at)
        if len(self._sessions) > REMEMBERED:
            self._sessions.popitem(last=False)
        return session

    def _session(self, team: str, name: str) -> _Session:
        """What is known of a session; of one that began before, what its opening says."""
        known = self._sessions.get((team, name))
        if known is not None:
            return known
        opened = self._opening(team, name)
        return self._begin(team, opened) if opened else _Session(UNKNOWN)

    def _end(self, team: str, record: EpisodeEnded) -> None:
        session = self._session(team, record.correlation_id)
        for agent, turn in session.turns.items():
            self._over(agent, turn)
        self._sessions.pop((team, record.correlation_id), None)
        labels = {"team": team, "version": session.version}
        self._meters.record("session.ended", 1, outcome=outcome_of(record), **labels)
        if session.opened is not None:
            self._meters.record("session.duration", record.at - session.opened, **labels)
        if session.judged and not session.missing:
            self._rewarded(team, session.version, "terms", session.paid)

    def _rewarded(self, team: str, version: str, source: str, value: float) -> None:
        mean = self._mean(("session", team, version, source), value)
        self._meters.record("session.reward", mean, team=team, version=version, source=source)

    def _mean(self, key: tuple[str, ...], value: float) -> float:
        window = self._windows[key]
        window.append(value)
        return fmean(window)


def outcome_of(record: EpisodeEnded) -> str:
    """How a session ended, in a word."""
    return "given_up" if "given_up" in record.outcome else end_text(record)
