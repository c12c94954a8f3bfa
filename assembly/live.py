"""A role at work live: from an event and the session's records to its decisions and the next event.

The store's history is the session: whoever gets an event rebuilds the session from it, decides for as long as it is
its turn, and hands over records and the next event in one commit. So any process can go on with any session.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assembly.driving import told, turn_of
from assembly.fit import HANDED
from assembly.versions import Version
from envs.restore import restored
from envs.session import Sampled, Session
from policies.playing import Choice
from runtime.actor.behaviour import Outcome, Send
from runtime.bus.event import Event
from runtime.errors import RepertoryError, TeamError
from runtime.records import (
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Feedback,
    Json,
    ModelCalled,
    Observed,
    Record,
    Rewarded,
    Sent,
    ToolAnswered,
    ToolCall,
    ToolCalled,
)
from runtime.seams import Clock, now
from runtime.toolbox.facts import Board, SharedFacts
from runtime.tracing import carried, model_call, parsed, root, trace_id
from runtime.types import AgentId, Scenario

CLIENT = "client"
"""The role that opens sessions and hears of their end: whoever runs the team."""


OF_A_SESSION = (
    EpisodeOpened, Observed, Decided, ToolCalled, ToolAnswered, ModelCalled, Sent, Rewarded, Feedback, EpisodeEnded
)  # fmt: skip
"""The records that make a session; the history also holds what its agents went through."""


class NotUnderstood(RepertoryError):
    """An event that this role can do nothing with: no session, no case, or not its turn."""


History = Callable[[str], Sequence[Record]]
"""The committed records of a session."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How a team is run live."""

    greedy: bool = True
    """The likeliest call, in place of one drawn."""
    seed: int = 0
    """What chance is drawn from, with scenario, agent and turn."""
    before: Callable[[Session, AgentId], None] | None = None
    """Called before each decision: a breakpoint, for one."""


USUAL = Manner()


def opening(scenario: Scenario) -> Json:
    """The payload that opens a session on a scenario, for the team's first role."""
    return {"open": case_of(scenario) | {"id": scenario.id}}


def case_of(scenario: Scenario) -> dict[str, Json]:
    """A scenario as JSON, but for its id."""
    return {"visible": dict(scenario.visible), "truth": dict(scenario.truth), "seed": scenario.seed}


class LiveRole:
    """One role of a version (``runtime.actor.Behaviour``).

    Args:
        version: what plays.
        role: who decides here.
        history: the committed records of a session.
        manner: how.
        clock: the time on records.
        board: where the team's shared facts are, for a team that has any.
    """

    schema = 1
    """Its own state is only a count: the session is in the history."""

    def __init__(
        self,
        version: Version,
        role: AgentId,
        history: History,
        manner: Manner = USUAL,
        clock: Clock = now,
        board: Board | None = None,
    ) -> None:
        self.version, self.role, self._history, self._manner, self._clock = version, role, history, manner, clock
        self._board = board
        self._policy = version.seats[role]

    def handle(self, state: Json, event: Event) -> Outcome:
        """Decide for as long as it is this role's turn in the event's session.

        Raises:
            NotUnderstood: there is nothing to decide.
        """
        session = self._session(event.correlation_id, event.payload, event.traceparent)
        if self.role not in session.to_act:
            whose = ", ".join(session.to_act) or "nobody, the session is over"
            raise NotUnderstood(f"{self.role} has no turn in session {event.correlation_id}; to act: {whose}")
        known = 0 if "open" in _fields(event.payload) else len(session.records)
        chosen = self._act(session, event.payload)
        return Outcome(
            state={"events": _fields(state).get("events", 0) + 1},
            sends=(self._following(session, chosen),),
            records=tuple(session.records[known:]),
        )

    def _session(self, name: str, payload: Json, asked: str) -> Session:
        records = [r for r in self._history(name) if isinstance(r, OF_A_SESSION)]
        if records and isinstance(records[-1], EpisodeEnded):
            raise NotUnderstood(f"{self.role} has no turn in session {name}: the session is over")
        if records:
            return self._sharing(restored(self.version.team, recorded_case(records), records, clock=self._clock))
        case = _fields(payload).get("open")
        if not isinstance(case, dict):
            raise NotUnderstood(f"session {name} has not been opened, and this event does not open it")
        return self._sharing(self._opened(name, cast("dict[str, Any]", case), asked))

    def _sharing(self, session: Session) -> Session:
        """The session, on the team's own board where its agents share facts."""
        facts = getattr(session.world, "facts", None)
        if isinstance(facts, SharedFacts):
            if self._board is None:
                raise TeamError(
                    f"the agents of {self.version.team.name} share facts, and {self.role} was given no board"
                )
            facts.move(self._board, session.records)
        return session

    def _opened(self, name: str, case: Mapping[str, Any], asked: str) -> Session:
        try:
            scenario = Scenario(
                id=case["id"], visible=case["visible"], truth=case.get("truth", {}), seed=case.get("seed", 0)
            )
        except (KeyError, TypeError) as error:
            raise NotUnderstood(f"session {name} cannot be opened: {error!r}") from None
        try:
            session = Session(
                self.version.team,
                scenario,
                seed=self._manner.seed,
                correlation_id=name,
                version=self.version.name,
                clock=self._clock,
            )
        except (LookupError, TypeError, ValueError) as error:  # what data that is not as expected raises
            raise NotUnderstood(f"the team cannot begin on this case: {type(error).__name__}: {error}") from error
        opened = cast("EpisodeOpened", session.records[0])
        asker = parsed(asked)
        told = asked if asker and asker.trace != trace_id(name) else ""  # our own begins with the session
        session.records[0] = opened.model_copy(update={"case": case_of(scenario), "traceparent": told})
        return session

    def _act(self, session: Session, payload: Json) -> dict[str, Json]:
        """Decide for as long as it is this role's turn; what was chosen in a round that others must still decide in."""
        if len(session.to_act) > 1:
            return self._in_a_round(session, payload)
        while session.to_act == (self.role,):
            self._look(session)
            choice = self._decided(session)
            since = len(session.records)
            session.act(self.role, choice.action, Sampled(choice.logp, choice.probabilities))
            self._pay(session, since)
        return {}

    def _in_a_round(self, session: Session, payload: Json) -> dict[str, Json]:
        """Everybody decides on what was seen before the round; the last one carries the round out."""
        self._look(session)
        choice = self._decided(session)
        chosen: dict[str, Json] = {
            **_fields(payload).get("chosen", {}),
            self.role: _written(choice.action, choice.logp, choice.probabilities),
        }
        if set(chosen) < set(session.to_act):
            return chosen
        since = len(session.records)
        session.act_all({a: _read(c) for a, c in chosen.items()}, {a: _sampled(c) for a, c in chosen.items()})
        self._pay(session, since)
        return {}

    def _decided(self, session: Session) -> Choice:
        """What the policy chooses; a model that it asks is told which span it is asked in."""
        opened, turn = cast("EpisodeOpened", session.records[0]), turn_of(session, self.role)
        name = opened.correlation_id
        asking = model_call(root(name, opened.traceparent), f"{name}/{self.role}/{turn.turn}")
        with carried(asking.header):
            (choice,) = self._policy.decide([turn], self._manner.greedy)
        told(session, self.role, choice)
        return choice

    def _look(self, session: Session) -> None:
        if self._manner.before is not None:
            self._manner.before(session, self.role)

    def _pay(self, session: Session, since: int) -> None:
        if self.version.judge.terms:
            session.note(self.version.judge(session, since).records)

    def _following(self, session: Session, chosen: Mapping[str, Json]) -> Send:
        if session.ended:
            return Send(to=CLIENT, payload={"outcome": dict(session.outcome), "success": session.success})
        if chosen:
            return Send(to=next(a for a in session.to_act if a not in chosen), payload={"chosen": dict(chosen)})
        sent = next((r for r in reversed(session.records) if isinstance(r, Sent)), None)
        (following, *_) = session.to_act
        return Send(to=following, payload={HANDED: sent.payload if sent and sent.to == following else None})


def _fields(payload: Json) -> Mapping[str, Any]:
    """What a payload or state says by name; nothing where it is no object."""
    return cast("Mapping[str, Any]", payload) if isinstance(payload, dict) else {}


def recorded_case(records: Sequence[Record]) -> Scenario:
    """The scenario that a session's records begin with. Raises NotUnderstood if they do not."""
    opened = records[0]
    if not isinstance(opened, EpisodeOpened) or opened.case is None:
        raise NotUnderstood("the session's history does not begin with its opening and its case")
    case = opened.case
    return Scenario(id=opened.scenario, visible=case["visible"], truth=case["truth"], seed=case["seed"])


def _written(action: Any, logp: float | None, probabilities: tuple[float, ...] | None) -> Json:
    said = action.model_dump() if isinstance(action, ToolCall) else action if isinstance(action, str) else int(action)
    return {"action": said, "logp": logp, "probabilities": list(probabilities) if probabilities else None}


def _read(chosen: Mapping[str, Any]) -> int | str | ToolCall:
    said = chosen["action"]
    if isinstance(said, str):
        return said
    return ToolCall(**cast("dict[str, Any]", said)) if isinstance(said, dict) else int(said)


def _sampled(chosen: Mapping[str, Any]) -> Sampled:
    odds = chosen["probabilities"]
    return Sampled(chosen["logp"], tuple(odds) if odds else None)
