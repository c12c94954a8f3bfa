"""One run of a team on a scenario: whose turn it is, what is seen, what an action does.

Pure: no Ray, no PettingZoo, no waiting. Training, evaluation, the live runtime and serving all step this one engine.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.asking import Ask, ask
from envs.candidates import candidates
from envs.contracts import contract_of, pass_schema
from envs.floor import Floor
from envs.freshness import marked, stale_before
from envs.transcript import Transcript
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
from runtime.seams import Clock, digest, now
from runtime.tools import Contract, parse_call
from runtime.types import (
    HAND_BACK,
    HAND_OVER,
    PASS_TURN,
    AgentId,
    Observation,
    Role,
    Scenario,
    Team,
    World,
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """How a policy came to its action."""

    logp: float | None = None
    probabilities: tuple[float, ...] | None = None
    policy_hash: str = ""


UNSAMPLED = Sampled()
Action = int | ToolCall | str | Fault
"""A candidate's index, a call, a call as JSON text, or a fault: why there is no call."""
_NO_TOOL = (HAND_OVER, HAND_BACK, PASS_TURN)


class _Spent:
    """What a role has used up in this episode."""

    __slots__ = ("calls", "tokens", "usd")

    def __init__(self) -> None:
        self.calls, self.tokens, self.usd = 0, 0, 0.0


class Session:
    """A team at work on one scenario."""

    def __init__(
        self,
        team: Team,
        scenario: Scenario,
        *,
        seed: int = 0,
        correlation_id: str = "",
        version: str = "",
        clock: Clock = now,
    ) -> None:
        self.team, self.scenario, self.seed = team, scenario, seed
        self.correlation_id = correlation_id or f"{digest(team.name, scenario.id, seed):016x}"
        self.world: World = team.world(scenario)
        self.records: list[Record] = []
        """Everything that has happened, in order."""
        self.invalid: Counter[AgentId] = Counter()
        """Calls that were answered with an error, by agent."""
        self.ended = self.truncated = self.success = False
        self.outcome: Mapping[str, Json] = {}
        self.asking: Ask = ask
        """How tools are asked; where they run under a deadline or on another machine, by something else."""
        self._clock, self._at = clock, clock()
        self._floor = Floor(team.turns)
        self._roles: dict[AgentId, Role] = {r.name: r for r in team.roles}
        self._calls = {r.name: candidates(team, r) for r in team.roles}
        self._turn: Counter[AgentId] = Counter()
        self._decisions = 0
        self._spent = {r.name: _Spent() for r in team.roles}
        self._done: dict[tuple[AgentId, int], float] = {}
        """When each call that may not be repeated was made (Unix time, s)."""
        self._oldest = dict.fromkeys(self._roles, float("-inf"))
        """What was read before this moment is stale to the agent, as of its last observation."""
        self._transcript = Transcript(team, scenario, self.world)
        self._observation: dict[AgentId, Observation] = {}
        self._key = (seed, scenario.id)
        self.records.append(
            EpisodeOpened(**self._stamp(), team=team.name, scenario=scenario.id, seed=seed, version=version)
        )

    # -- what is seen

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """The agents that decide now; none when the episode has ended."""
        return () if self.ended else self._floor.to_act

    def observe(self, agent: AgentId) -> Observation:
        """What the agent has before it. Does not change anything; the same until somebody acts."""
        known = self._observation.get(agent)
        if known is None:
            known = self._look(agent, self._at if self._roles[agent].max_age_s is None else self._clock())
        return known

    def _look(self, agent: AgentId, at: float) -> Observation:
        """What the agent has before it at that time (Unix time, s), unless it has looked already."""
        known = self._observation.get(agent)
        if known is not None:
            return known
        seen = self._transcript.of(agent)
        if self._roles[agent].max_age_s is not None:
            self._oldest[agent] = stale_before(self._roles[agent], at)
            seen = marked(seen, self._oldest[agent], at)
        known = self._observation[agent] = Observation(
            agent=agent,
            turn=self._turn[agent],
            seen=seen,
            candidates=self._calls[agent],
            mask=self._mask(agent),
            key=self._key,
        )
        return known

    def _mask(self, agent: AgentId) -> tuple[bool, ...]:
        done, repeats = self._standing(agent), self.team.repeats
        tired = self._over_budget(agent)
        return tuple(
            (repeats or (agent, i) not in done) and (not tired or self._is_final(c))
            for i, c in enumerate(self._calls[agent])
        )

    def _standing(self, agent: AgentId) -> Mapping[tuple[AgentId, int], float]:
        """The calls that were made and whose answers are not too old for the agent."""
        if self._roles[agent].max_age_s is None:
            return self._done
        return {k: at for k, at in self._done.items() if at >= self._oldest[agent]}

    def _is_final(self, call: ToolCall) -> bool:
        return call.tool in _NO_TOOL or self.team.tools[call.tool].ends

    def _over_budget(self, agent: AgentId) -> str:
        budget, spent = self._roles[agent].budget, self._spent[agent]
        for name in ("calls", "tokens", "usd"):
            limit = getattr(budget, name)
            if limit is not None and getattr(spent, name) >= limit:
                return f"{name}: {getattr(spent, name)} of {limit} used"
        return ""

    # -- what an action does

    def act(self, agent: AgentId, action: Action, sampled: Sampled = UNSAMPLED) -> Sequence[Record]:
        """Carry out one agent's decision and return what happened.

        Args:
            agent: one of ``to_act``.
            action: a candidate's index, a call, a call as JSON text, or why there is none. One that is malformed,
                unknown, ill-typed, illegal or over budget is answered with a structured error, and counted.
            sampled: how the policy came to it, for the record.

        Raises:
            ValueError: it is not this agent's turn. (That is the caller's fault; nothing an agent says raises.)
        """
        if agent not in self.to_act:
            raise ValueError(
                f"it is not {agent}'s turn; to act: {', '.join(self.to_act) or 'nobody, the episode is over'}"
            )
        start = len(self.records)
        self._at = self._clock()
        observation = self._look(agent, self._at)
        who = self._stamp(agent)
        self.records.append(
            Observed(**who, text=observation.text, candidates=observation.candidates, mask=observation.mask)
        )
        call = self._read(agent, action)
        self.records.append(self._decided(who, call, sampled))
        self._carry_out(agent, call, who)
        self._turn[agent] += 1
        self._decisions += 1
        self._observation.clear()
        if not self.ended and self._decisions >= self.team.max_turns:
            self._end(truncated=True)
        return self.records[start:]

    def act_all(
        self, actions: Mapping[AgentId, Action], sampled: Mapping[AgentId, Sampled] | None = None
    ) -> Sequence[Record]:
        """Carry out a simultaneous round: every decision is taken on what was seen before the round."""
        start = len(self.records)
        agents = self.to_act
        before = {a: self._look(a, self._at) for a in agents}
        for i, agent in enumerate(agents):
            if self.ended:
                break
            self._observation.update({a: before[a] for a in agents[i:]})
            self.act(agent, actions[agent], (sampled or {}).get(agent, UNSAMPLED))
        return self.records[start:]

    def note(self, records: Sequence[Record]) -> None:
        """Add what others have to say about the run, such as rewards."""
        self.records.extend(records)

    def cut(self) -> None:
        """End the episode from outside, as truncated."""
        if not self.ended:
            self._end(truncated=True)

    def spend(self, agent: AgentId, tokens: int = 0, usd: float = 0.0) -> None:
        """Count what a model used against the role's budget."""
        self._spent[agent].tokens += tokens
        self._spent[agent].usd += usd

    def asked(self, agent: AgentId, spent: Mapping[str, Any]) -> None:
        """Note that a language model was asked for the agent's next decision, and count it against its budget.

        Args:
            agent: whose turn it is.
            spent: the fields of a ModelCalled record.
        """
        self._at = self._clock()
        called = ModelCalled(**self._stamp(agent), **spent)
        self.records.append(called)
        self.charge(called)

    def charge(self, called: ModelCalled) -> None:
        """Count what a model that was asked took against the budget of the role that asked it."""
        self.spend(called.agent, called.tokens_in + called.tokens_out, called.cost_usd or 0.0)

    def _decided(self, who: dict[str, Any], call: ToolCall | Fault, sampled: Sampled) -> Decided:
        shown = call if isinstance(call, ToolCall) else ToolCall(tool="")
        return Decided(
            **who, call=shown, logp=sampled.logp, probabilities=sampled.probabilities, policy_hash=sampled.policy_hash
        )

    def _read(self, agent: AgentId, action: Action) -> ToolCall | Fault:
        if isinstance(action, ToolCall | Fault):
            return action
        if isinstance(action, str):
            return parse_call(action)
        if not isinstance(action, int):
            return Fault(
                code="malformed", message=f"an action is a candidate's index or a call, not {type(action).__name__}"
            )
        calls = self._calls[agent]
        if not 0 <= action < len(calls):
            return Fault(code="malformed", message=f"action {action} is not in 0..{len(calls) - 1}")
        return calls[action]

    def _carry_out(self, agent: AgentId, call: ToolCall | Fault, who: dict[str, Any]) -> None:
        fault = call if isinstance(call, Fault) else self._objection(agent, call)
        if fault is not None or isinstance(call, Fault):
            self._refuse(agent, "" if isinstance(call, Fault) else call.tool, fault, who)
            self._next_turn()
        elif call.tool in (HAND_OVER, HAND_BACK):
            self._pass_on(agent, call, who)
        elif call.tool == PASS_TURN:
            self._next_turn()
        else:
            self._use(agent, call, who)

    def _objection(self, agent: AgentId, call: ToolCall) -> Fault | None:
        passes = tuple(dict.fromkeys(c.tool for c in self._calls[agent] if c.tool in _NO_TOOL))
        if call.tool not in self._roles[agent].tools and call.tool not in passes:
            known = ", ".join((*self._roles[agent].tools, *passes))
            return Fault(code="unknown_tool", message=f"{agent} has no tool {call.tool!r}; it has {known}")
        wrong = self._contract(agent, call.tool).problem(dict(call.args))
        if wrong:
            return Fault(code="bad_arguments", message=wrong[0], path=wrong[1])
        slot = None if self.team.repeats else self._slot(agent, call)
        if slot is not None and (agent, slot) in self._standing(agent):
            return Fault(code="illegal", message=f"{call.tool} was asked before and would answer the same")
        spent = "" if self._is_final(call) else self._over_budget(agent)
        return Fault(code="over_budget", message=spent) if spent else None

    def _slot(self, agent: AgentId, call: ToolCall) -> int | None:
        return next(
            (i for i, c in enumerate(self._calls[agent]) if c is call or (c.tool == call.tool and c.args == call.args)),
            None,
        )

    def _contract(self, agent: AgentId, tool: str) -> Contract:
        if tool in _NO_TOOL:
            return contract_of(pass_schema(self.team, tool))
        return contract_of(self.team.tools[tool].input_schema)

    def _refuse(self, agent: AgentId, tool: str, fault: Fault | None, who: dict[str, Any]) -> None:
        self.invalid[agent] += 1
        self.records.append(ToolAnswered(**who, tool=tool, ok=False, fault=fault))
        self._transcript.fault(agent, tool, fault)

    def _pass_on(self, agent: AgentId, call: ToolCall, who: dict[str, Any]) -> None:
        to = self._floor.receiver(agent, call.tool)
        assert to is not None, "an agent's passes have receivers"
        payload = self._transcript.hand(agent, to, call)
        self.records.append(Sent(**who, to=to, payload=payload))
        self._floor.handed(to)

    def _use(self, agent: AgentId, call: ToolCall, who: dict[str, Any]) -> None:
        tool = self.team.tools[call.tool]
        slot = None if self.team.repeats or tool.ends else self._slot(agent, call)
        if slot is not None:
            self._done[agent, slot] = self._at
        spent = self._spent[agent]
        spent.calls += 1
        spent.usd += tool.cost_usd
        self.records.append(ToolCalled(**who, tool=tool.name, args=call.args))
        answer = self.asking(self.world, tool, call, who)
        self.records.append(answer)
        if answer.ok:
            self._transcript.answer(agent, call, answer.value, answer.at)
        else:
            self.invalid[agent] += 1
            self._transcript.fault(agent, tool.name, answer.fault)
        if tool.ends and answer.ok:
            self._end()
        else:
            self._next_turn()

    def _next_turn(self) -> None:
        if self._floor.acted():
            end_round = getattr(self.world, "end_round", None)
            if (end_round is not None and end_round()) or self._floor.over:
                self._end()

    def _end(self, truncated: bool = False) -> None:
        self.ended, self.truncated = True, truncated
        outcome, success = self.world.outcome()
        self.outcome, self.success = outcome, success and not truncated
        self.records.append(EpisodeEnded(**self._stamp(), outcome=outcome, success=self.success, truncated=truncated))

    def _stamp(self, agent: AgentId = "") -> dict[str, Any]:
        stamp: dict[str, Any] = {"correlation_id": self.correlation_id, "at": self._at}
        return {**stamp, "agent": agent, "turn": self._turn[agent]} if agent else stamp
