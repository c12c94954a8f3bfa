"""A recorded session once more, decision by decision, under another version.

As long as the version decides as was recorded, its tools are answered as was recorded. From the first decision on that
differs, what was recorded says nothing any more: then the simulated world answers, where there is one that answered as
recorded before, and the replay stops where there is none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from assembly.driving import Driven
from assembly.live import OF_A_SESSION
from assembly.paid import Compared, paid_in
from assembly.recorded import playable
from assembly.versions import Version
from envs.asking import ask
from envs.session import Session
from policies.playing import Choice, Playable, Turn
from runtime.errors import RepertoryError
from runtime.recorded import RecordedSession
from runtime.records import Decided, EpisodeOpened, Fault, Observed, Record, ToolAnswered, ToolCall
from runtime.tools import parse_call
from runtime.types import AgentId, Observation, Tool, World


class NotReplayed(RepertoryError):
    """A session that this version cannot begin: another team's, or a case that its world cannot be made of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A call that one of the two could have made, and how likely it was to either."""

    call: ToolCall
    was: float | None
    """0 to 1; None: it was no candidate, or nothing is known of its probability."""
    now: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parting:
    """The first decision that differs."""

    agent: AgentId
    turn: int
    decision: int
    """How many decisions of the session came before it."""
    seen: str
    """What the agent saw then; empty where nobody of that name decided there."""
    sees: str
    """What it sees now, which may differ where prompts or tools do."""
    was: ToolCall | None
    """None: nobody decided there: the session was over, or it was another's turn."""
    now: ToolCall | None
    """None: what it said can be read as no call."""
    options: tuple[Option, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """What became of a session under another version."""

    session: str
    scenario: str
    version: str
    """The hash of the content of the version that played."""
    recorded: str
    """That of the version that had."""
    agreed: int
    """Decisions that were as recorded, before the first that was not."""
    parting: Parting | None
    """None: all decisions were as recorded."""
    stopped: str
    """Why it did not go on to an end; empty: it did."""
    records: Sequence[Record] = field(repr=False)
    """Of the replay."""
    paid: Compared
    success: bool | None
    """How it ended; None: it did not."""


def replayed(version: Version, recorded: RecordedSession, *, greedy: bool = True) -> Replay:
    """The session under that version.

    Args:
        version: who plays now.
        recorded: what was recorded.
        greedy: the likeliest call, in place of one drawn; draws are those of the recorded seed.

    Raises:
        NotReplayed: the version cannot begin it.
    """
    run = _Run(version, recorded, greedy=greedy)
    stopped = run.play()
    session = run.session
    return Replay(
        session=recorded.session,
        scenario=recorded.scenario,
        version=version.name,
        recorded=recorded.version,
        agreed=run.agreed,
        parting=run.parting,
        stopped=stopped,
        records=tuple(session.records),
        paid=Compared(paid_in(run.records), {} if stopped else paid_in(session.records)),
        success=session.success if session.ended else None,
    )


class _Stop(Exception):
    """There is nothing to go on with."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A seat of which each choice is told before it is carried out (``policies.playing.Playable``)."""

    seat: Playable
    tell: Callable[[AgentId, Choice], None]

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """What the seat decides."""
        choices = self.seat.decide(turns, greedy)
        for turn, choice in zip(turns, choices, strict=True):
            self.tell(turn.agent, choice)
        return choices


class _Run:
    """A replay as it goes on."""

    def __init__(self, version: Version, recorded: RecordedSession, *, greedy: bool) -> None:
        self.records = [r for r in recorded.told() if isinstance(r, OF_A_SESSION)]
        self.agreed, self._odd = 0, ""
        self._version, self._greedy, self._case = version, greedy, recorded.case()
        self._seen = {(r.agent, r.turn): r for r in self.records if isinstance(r, Observed)}
        self._decided = {(r.agent, r.turn): r for r in self.records if isinstance(r, Decided)}
        self._answers = {(r.agent, r.turn): r for r in self.records if isinstance(r, ToolAnswered)}
        self.parting: Parting | None = None
        self.session = self._opened(recorded)
        self.session.asking = self._ask

    def _opened(self, recorded: RecordedSession) -> Session:
        team, opened = self._version.team, self.records[0]
        if not isinstance(opened, EpisodeOpened) or opened.team != team.name:
            raise NotReplayed(f"session {recorded.session} is one of {recorded.team}, not of {team.name}")
        self._at = opened.at
        try:
            return Session(
                team,
                self._case,
                seed=opened.seed,
                correlation_id=recorded.session,
                version=self._version.name,
                clock=lambda: self._at,
            )
        except Exception as error:
            raise NotReplayed(
                f"session {recorded.session}: the world of its case cannot be made: {type(error).__name__}: {error}"
            ) from error

    def play(self) -> str:
        """To the end; why it stopped before that, or nothing."""
        seats = {agent: _Watched(seat, self._compare) for agent, seat in self._version.seats.items()}
        judge = self._version.judge if self._version.judge.terms else None
        driven = Driven(self.session, seats, judge, greedy=self._greedy)
        times = (r.at for r in self.records if isinstance(r, Observed))
        try:
            while not driven.over:
                for _ in driven.to_act:
                    self._at = next(times, self._at)
                driven.step()
        except _Stop as reason:
            return str(reason)
        return ""

    def _compare(self, agent: AgentId, choice: Choice) -> None:
        """Whether an agent decides as recorded; the first one that does not parts the two."""
        if self.parting is not None:
            return
        seen = self.session.observe(agent)
        call = _call(seen, choice.action)
        was = self._decided.get((agent, seen.turn))
        if was is not None and (not was.call.tool if call is None else _same(was.call, call)):
            self.agreed += 1
            return
        self.parting = self._parting(seen, was, call, choice)
        if reason := self._no_world():
            raise _Stop(reason)

    def _parting(self, seen: Observation, was: Decided | None, call: ToolCall | None, choice: Choice) -> Parting:
        saw = self._seen.get((seen.agent, seen.turn))
        return Parting(
            agent=seen.agent,
            turn=seen.turn,
            decision=self.agreed,
            seen=saw.text if saw else "",
            sees=seen.text,
            was=was.call if was else None,
            now=call,
            options=tuple(_options(saw, was, seen, choice)),
        )

    # -- what answers

    def _no_world(self) -> str:
        """Why no simulated world can take the place of what was recorded; empty: one can."""
        if not playable(self._case, self._version.team):
            return "the hidden truth of its case was not recorded, so no simulated world can answer"
        return self._odd

    def _ask(self, world: World, tool: Tool, call: ToolCall, stamp: dict[str, Any]) -> ToolAnswered:
        outside = tool.outside is not None and not tool.outside.rerun
        if self.parting is not None:
            if outside:
                raise _Stop(f"{tool.name} acts outside, and nothing outside is asked again")
            return ask(world, tool, call, stamp)
        known = self._answers.get((stamp["agent"], stamp["turn"]))
        if known is None:
            raise _Stop(f"what {tool.name} answered was not recorded")
        if not outside:
            again = ask(world, tool, call, stamp)
            if (again.ok, again.value) != (known.ok, known.value) and not self._odd:
                self._odd = (
                    f"the simulated world had answered otherwise than recorded before, to {tool.name} of "
                    f"{stamp['agent']}, so it cannot take its place"
                )
        return known


def _call(seen: Observation, action: Any) -> ToolCall | None:
    """The call that an action is; None: it can be read as none."""
    if isinstance(action, str):
        found = parse_call(action)
        return None if isinstance(found, Fault) else found
    if isinstance(action, ToolCall):
        return action
    return seen.candidates[int(action)] if 0 <= int(action) < len(seen.candidates) else None


def _same(one: ToolCall, other: ToolCall) -> bool:
    return one.tool == other.tool and dict(one.args) == dict(other.args)


def _options(saw: Observed | None, was: Decided | None, seen: Observation, choice: Choice) -> Iterator[Option]:
    """Every candidate of either, in the order of what the role has now."""
    before = _odds(saw.candidates if saw else (), was.call, was) if was else []
    call = _call(seen, choice.action)
    after = _odds(seen.candidates, call, choice)
    calls = [*seen.candidates, *(saw.candidates if saw else ()), *((was.call,) if was and was.call.tool else ())]
    told_of: list[ToolCall] = []
    for each in (*calls, *((call,) if call else ())):
        if not any(_same(each, other) for other in told_of):
            told_of.append(each)
            yield Option(call=each, was=_found(before, each), now=_found(after, each))


def _odds(
    calls: Sequence[ToolCall], chosen: ToolCall | None, sampled: Decided | Choice
) -> list[tuple[ToolCall, float]]:
    """How likely each call was, as far as that is known."""
    if sampled.probabilities is not None and len(sampled.probabilities) == len(calls):
        return list(zip(calls, sampled.probabilities, strict=True))
    return [(chosen, exp(sampled.logp))] if chosen is not None and sampled.logp is not None else []


def _found(odds: Sequence[tuple[ToolCall, float]], call: ToolCall) -> float | None:
    return next((p for c, p in odds if _same(c, call)), None)
