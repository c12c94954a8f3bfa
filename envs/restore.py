"""A session as it stood, from its records: for an agent that was killed, and for a replay under another version."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from envs.asking import Ask, ask
from envs.session import Action, Sampled, Session
from runtime.errors import TeamError
from runtime.records import Decided, EpisodeOpened, Fault, ModelCalled, Observed, Record, ToolAnswered, ToolCall
from runtime.seams import Clock, now
from runtime.types import AgentId, Scenario, Team, Tool, World


class NotItsRecords(TeamError):
    """The records are not those of this team on this scenario: replaying them led somewhere else."""


def restored(
    team: Team,
    scenario: Scenario,
    records: Sequence[Record],
    *,
    clock: Clock = now,
    asking: Ask = ask,
    rerun: bool = True,
) -> Session:
    """Take every recorded decision again, with the recorded answers, and go on from there.

    Args:
        team: the team that made the records, or one whose tools and turns are the same.
        scenario: the scenario it was on.
        records: all records of the session, in order, from its opening on.
        clock: the time from here on.
        asking: how tools are asked from here on.
        rerun: run each tool again, on a fresh world, so that the world is where it was; the agents see the recorded
            answer all the same. Tools that act outside are never asked twice; False: neither are the others.

    Raises:
        NotItsRecords: a decision is not that of the agent whose turn it was.
    """
    opened = records[0] if records else None
    if not isinstance(opened, EpisodeOpened) or opened.scenario != scenario.id or opened.team != team.name:
        raise NotItsRecords(f"the records do not begin with {team.name} opening scenario {scenario.id}")
    answers = _Answers(list(records), asking, rerun=rerun)
    decided = deque(r for r in records if isinstance(r, Decided))
    times = chain([opened.at], (r.at for r in records if isinstance(r, Observed)))
    session = Session(
        team,
        scenario,
        seed=opened.seed,
        correlation_id=opened.correlation_id,
        version=opened.version,
        clock=lambda: next(times, None) or clock(),
    )
    session.asking = answers.ask
    while decided:
        _again(session, decided, answers)
    session.records[:] = records
    return session


def _again(session: Session, decided: deque[Decided], answers: "_Answers") -> None:
    """The next decision once more, or the next round of decisions."""
    agents = session.to_act
    taken = [decided.popleft() for _ in range(min(len(agents), len(decided)))]
    if not taken or {d.agent for d in taken} != set(agents[: len(taken)]):
        who = taken[0].agent if taken else decided[0].agent
        raise NotItsRecords(f"{who} decided where {', '.join(agents) or 'nobody'} was to act")
    actions: dict[AgentId, Action] = {d.agent: answers.action(d) for d in taken}
    sampled = {d.agent: Sampled(d.logp, d.probabilities, d.policy_hash) for d in taken}
    for called in filter(None, map(answers.model, taken)):
        session.charge(called)
    if len(agents) == 1:
        session.act(agents[0], actions[agents[0]], sampled[agents[0]])
    else:
        session.act_all(actions, sampled)


class _Answers:
    """What tools and models answered, by decision; past the records' end, the tools themselves."""

    def __init__(self, records: Iterable[Record], asking: Ask, *, rerun: bool) -> None:
        self._known = {r.decision_id: r for r in records if isinstance(r, ToolAnswered)}
        self._models = {r.decision_id: r for r in records if isinstance(r, ModelCalled)}
        self._asking, self._rerun = asking, rerun

    def model(self, decided: Decided) -> ModelCalled | None:
        """How a model was asked for the decision, if one was."""
        return self._models.get(decided.decision_id)

    def action(self, decided: Decided) -> ToolCall | Fault:
        """The call, or what was wrong with what the agent said in its place."""
        answer = self._known.get(decided.decision_id)
        unread = not decided.call.tool and answer is not None and answer.fault is not None
        return answer.fault if unread and answer and answer.fault else decided.call

    def ask(self, world: World, tool: Tool, call: ToolCall, stamp: dict[str, Any]) -> ToolAnswered:
        known = self._known.get(f"{stamp['correlation_id']}/{stamp['agent']}/{stamp['turn']}")
        if known is None:
            return self._asking(world, tool, call, stamp)
        if self._rerun and (tool.outside is None or tool.outside.rerun):
            ask(world, tool, call, stamp)
        return known
