"""What a team is, as plain values: roles, tools, scenarios, turn protocols. Written once, run everywhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal, Protocol

from runtime.records import Json, Record, Rewarded, ToolCall

AgentId = str
HAND_OVER = "hand_over"
"""The call with which a role passes the case on to the next one."""
HAND_BACK = "hand_back"
"""The call with which a role returns the case to the one before it."""
PASS_TURN = "pass_turn"
"""The call with which a role lets its turn go by, where turns go round and it may have nothing left to call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outside:
    """How a tool is called that acts outside the process: it may hang, and its effect outlives the session."""

    timeout_s: float = 30.0
    """How long a call, or its undo, may take (s)."""
    key: str = ""
    """The parameter that is given the idempotency key, the same whenever a decision is carried out; empty: none is."""
    idempotent: bool = False
    """Calling it twice does no more than calling it once."""
    rerun: bool = False
    """What it changed lies in the world, too: a session that is restored runs it again there. Nothing outside is meant
    to happen then."""
    undo: Callable[..., Json] | None = None
    """Called as ``undo(world, answer, **args)``, with the call's key where it has one. The answer is None where it is
    not known: then the effect may have happened or not, and undoing what did not happen must do nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """Something a role can call. Build it with ``runtime.tools.tool`` from a typed function."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON Schema (Draft 2020-12) of the arguments object."""
    output_schema: Mapping[str, Any]
    """JSON Schema (Draft 2020-12) of the answer."""
    run: Callable[..., Json]
    """Called as ``run(world, **args)``; what it raises is answered to the agent."""
    cost_usd: float = 0.0
    """What each call is billed, in US dollars."""
    ends: bool = False
    """A successful call ends the episode."""
    loose: bool = False
    """Coerce wrongly typed answers ("25.3" for 25.3) and record what was coerced; else a wrong type is a fault."""
    outside: Outside | None = None
    """None: it only acts on the episode's world, and is called at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a role may spend in one episode; None is no limit. Calls that end its part are never refused."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """A seat in a team."""

    name: AgentId
    brief: str
    """What the role is for and how it should work, as told to a language model."""
    tools: tuple[str, ...]
    policy: str = ""
    """The policy that decides for it; empty: one of its own, named after the role."""
    learns: bool = True
    budget: Budget = Budget()
    calls: tuple[ToolCall, ...] | None = None
    """The calls to choose among, in a fixed order; None: every call that the tools' schemas allow, if finite."""
    max_age_s: float | None = None
    """An answer read longer ago than this (s) is shown as stale and may be asked for again; None: none ever is."""
    gives: Mapping[str, Any] | None = None
    """JSON Schema (Draft 2020-12) of what it passes on to the next role of a pipeline; None: whatever it likes."""
    takes: Mapping[str, Any] | None = None
    """JSON Schema of what it can read of what is passed on to it; None: anything."""
    contract: int = 1
    """The version of ``gives``; one more whenever its meaning changes."""
    understands: int = 1
    """The version that ``takes`` is written for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One task: what may be seen, and the hidden truth that only the world and the rewards read."""

    id: str
    visible: Mapping[str, Json]
    truth: Mapping[str, Json]
    seed: int = 0
    """What the world draws its chance from."""


class World(Protocol):
    """What the tools act on, made afresh for each episode."""

    def outcome(self) -> tuple[Mapping[str, Json], bool]:
        """How things stand at the end, and whether that is a success."""
        ...


class Watched(Protocol):
    """A world that shows an agent something at each of its turns, without being asked."""

    def look(self, agent: AgentId) -> Json:
        """What the agent sees now; None for nothing."""
        ...


class Rounds(Protocol):
    """A world that changes when everybody has acted (round-robin and simultaneous turns)."""

    def end_round(self) -> bool:
        """Move on; True when the episode is over."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """A hands over to B, B to C; the last one ends the episode with a tool that ends."""

    order: tuple[AgentId, ...]
    hand_back: bool = False
    """A role may return the case to the one before it."""
    handoff: Literal["notes", "verdict"] = "notes"
    """What travels: all notes gathered so far, or only a named suspicion."""
    verdicts: tuple[str, ...] = ()
    """The suspicions that can be named."""
    kind: Literal["pipeline"] = "pipeline"


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundRobin:
    """One call each in turn, for a number of rounds; what others did is seen by all."""

    order: tuple[AgentId, ...]
    rounds: int
    kind: Literal["round_robin"] = "round_robin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Simultaneous:
    """Everybody calls at once, for a number of rounds; what others did is seen afterwards."""

    order: tuple[AgentId, ...]
    rounds: int
    kind: Literal["simultaneous"] = "simultaneous"


Turns = Pipeline | RoundRobin | Simultaneous
"""Whose turn it is: a team's turn protocol."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One line of what an agent sees: the case, a note, a tool's answer, an error, what the world shows."""

    kind: Literal["case", "note", "call", "answer", "error", "world"]
    source: str
    """The tool or agent it comes from."""
    data: Json
    text: str
    """The same as one line of text; an observation's text is these lines."""
    at: float | None = None
    """When a tool's answer was read (Unix time, s)."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What an agent has before it when it decides."""

    agent: AgentId
    turn: int
    seen: tuple[Seen, ...]
    candidates: tuple[ToolCall, ...]
    """The role's calls in their fixed order."""
    mask: tuple[bool, ...]
    """Which candidates are legal now."""
    key: tuple[str | int, ...] = ()
    """(seed, scenario): with agent and turn, what chance is drawn from (``seams.uniform``)."""

    @cached_property
    def text(self) -> str:
        """What the agent sees, as text."""
        return "\n".join(s.text for s in self.seen)


ScriptedPolicy = Callable[[Observation, Random], int | ToolCall]
"""Decides by rule: a candidate's index or any call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """Something to compare a trained team with."""

    policies: Mapping[AgentId, ScriptedPolicy] | None = None
    """One for each role, where the baseline can be played."""
    exact: Callable[[], float] | None = None
    """Its expected return, where that can be computed."""


TermKind = Literal["outcome", "cost", "shaping"]


class View(Protocol):
    """What a reward term may read: the past, up to and including its step."""

    @property
    def agent(self) -> AgentId:
        """Whose turn the step was."""
        ...

    @property
    def turn(self) -> int:
        """The agent's own turns before this one."""
        ...

    @property
    def history(self) -> Sequence[Record]:
        """Everything that happened up to and including the step."""
        ...

    @property
    def step(self) -> Sequence[Record]:
        """What happened in this step."""
        ...

    @property
    def visible(self) -> Mapping[str, Json]:
        """What the scenario shows."""
        ...

    @property
    def truth(self) -> Mapping[str, Json]:
        """The scenario's hidden truth; raises unless the term declares that it reads it."""
        ...

    @property
    def outcome(self) -> Mapping[str, Json]:
        """How the episode ended; raises unless declared, and before the end."""
        ...

    @property
    def success(self) -> bool:
        """Whether the episode ended well; under the same rule as the outcome."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardTerm:
    """One reason to be paid. Build it with ``runtime.terms.term``."""

    name: str
    function: Callable[[View], float]
    kind: TermKind
    """``outcome``: what the team is for; ``cost``: what it spends; ``shaping``: a hint on the way."""
    scope: Literal["agent", "team"] = "team"
    """Whether the value is paid to the agent whose turn it was, or in full to everybody."""
    reads: frozenset[Literal["truth", "outcome"]] = frozenset()
    at_end: bool = False
    """Judged once, when the episode has ended, and not at every step."""
    timeout_s: float | None = None
    """Seconds after which a judgement is missing, for a term that asks somebody; None for one that only computes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Team:
    """Roles, tools, turns, world, scenarios and rewards: all that training, evaluation, runtime and serving need."""

    name: str
    roles: tuple[Role, ...]
    tools: Mapping[str, Tool]
    turns: Turns
    world: Callable[[Scenario], World]
    """Makes the world of one episode."""
    generate: Callable[[str, int, int], Scenario] | None = None
    """``generate(split, seed, index)`` makes a scenario; None where scenarios come from a file only."""
    terms: Mapping[str, RewardTerm] = field(default_factory=dict[str, RewardTerm])
    """The team's own reward terms, by the names an experiment file uses."""
    baselines: Mapping[str, Baseline] = field(default_factory=dict[str, Baseline])
    exact_for: frozenset[str] = frozenset()
    """The reward terms, each at weight 1, for which baselines' exact returns hold; empty: exactly the team's own."""
    repeats: bool = True
    """A role may make the same call again in an episode."""
    max_turns: int = 64
    """Decisions after which an episode is cut (truncated)."""
    opening_reveals: frozenset[str] = frozenset()
    """Truths that the first observation is meant to give away."""
    case_types: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON Schemas of a scenario's parts (keys ``visible`` and ``truth``), for scenarios from files."""

    def role(self, name: AgentId) -> Role:
        """The role of that name. Raises KeyError if there is none."""
        return next((r for r in self.roles if r.name == name), None) or _no_role(self, name)


class Played(Protocol):
    """What a judge reads of a run of a team."""

    @property
    def records(self) -> list[Record]:
        """Everything that has happened, in order."""
        ...

    @property
    def scenario(self) -> Scenario:
        """The task, hidden truth included."""
        ...

    @property
    def ended(self) -> bool:
        """The run is over."""
        ...

    @property
    def outcome(self) -> Mapping[str, Json]:
        """How it ended."""
        ...

    @property
    def success(self) -> bool:
        """Whether it ended well."""
        ...


@dataclass(frozen=True, slots=True)
class Paid:
    """What a step is worth. NaN: a term is missing, so the sum is unknown."""

    shared: float
    """To every agent, in the terms' unit."""
    own: Mapping[AgentId, float]
    """To single agents, on top."""
    records: Sequence[Rewarded]
    """Each term's value."""

    def to(self, agent: AgentId) -> float:
        """All that this agent is paid."""
        return self.shared + self.own.get(agent, 0.0)

    @property
    def team(self) -> float:
        """What the step brings to the team: shared pay once, single agents' pay summed."""
        return self.shared + sum(self.own.values())


Judge = Callable[[Played, int], Paid]
"""``judge(session, since)``: what the step whose records begin at index ``since`` is worth."""


def _no_role(team: Team, name: str) -> Role:
    raise KeyError(f"team {team.name} has no role {name!r}; it has {', '.join(r.name for r in team.roles)}")
