"""What a graph or a set of agents does not say of itself, and a team needs: cases, pay, what ends a case, its price."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envs.adapters.calling import as_json
from runtime.errors import TeamError
from runtime.records import Json, ToolCall
from runtime.types import AgentId, Baseline, RewardTerm, Scenario, Tool

ANSWER = "answer"
"""The tool with which a role says the last word, where a model would answer without calling a tool."""
MESSAGES = "messages"
"""The part of a graph's state that is not shown as such: it is the case, the calls and the answers."""


@dataclass(kw_only=True, slots=True)
class Scene:
    """One episode of an adapted team: the world that its tools act on."""

    scenario: Scenario
    succeeded: Callable[["Scene"], bool]
    context: Any = None
    """What ``Beside.context`` made of the scenario, as the framework hands it to its tools."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """A graph's state, as it stands; empty where the framework has none."""
    answer: str | None = None
    """The last word; None: nobody has said it."""

    def outcome(self) -> tuple[dict[str, Json], bool]:
        """The last word and the state, and whether that is a success."""
        return {ANSWER: self.answer, **self._shown()}, bool(self.succeeded(self))

    def look(self, agent: AgentId) -> Json:
        """What the state holds at a turn beside the case; None where that is nothing."""
        case = self.scenario.visible
        return {k: v for k, v in self._shown().items() if k not in case or case[k] != v} or None

    def _shown(self) -> dict[str, Json]:
        """The state without its messages, as JSON."""
        return {k: as_json(v) for k, v in self.state.items() if k != MESSAGES}


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """What the user gives beside what exists.

    A policy chooses among calls that can be listed: tools with free arguments need ``calls``, or arguments that are
    ``filled`` from the case.
    """

    name: str
    """The team's name."""
    succeeded: Callable[[Scene], bool]
    """Whether a case ended well."""
    terms: Mapping[str, RewardTerm]
    generate: Callable[[str, int, int], Scenario] | None = None
    """As ``Team.generate``; None: scenarios come from files only."""
    sample: Scenario | None = None
    """A case that shows what cases look like; None: the generator's first one."""
    context: Callable[[Scenario], Any] | None = None
    """Makes the framework's context (``context_schema``, ``RunContextWrapper``) of an episode."""
    order: Sequence[AgentId] = ()
    """Which seats are taken over, in this order; empty: all that are found."""
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """In place of the framework's of the same name: a simulation, an MCP server's, one that only other code runs."""
    ends: Sequence[str] = ()
    """Names of tools whose success ends the case."""
    answers: Sequence[str] = ()
    """What a role that may end the case can say: the candidates of a policy that chooses. One that writes may say
    anything."""
    calls: Mapping[str, Sequence[Mapping[str, Json]]] = field(default_factory=dict[str, Sequence[Mapping[str, Json]]])
    """The arguments with which a tool can be called, by the tool's name."""
    filled: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Arguments that the case decides and no agent: tool, argument, key of ``scenario.visible``."""
    outside: Sequence[str] = ()
    """Names of tools that act outside the process: bounded in time, and not run again at a restart or a replay."""
    cost_usd: Mapping[str, float] = field(default_factory=dict[str, float])
    """What a call is billed, by tool, in US dollars."""
    baselines: Mapping[str, Baseline] = field(default_factory=dict[str, Baseline])
    repeats: bool = True
    max_turns: int = 64

    def example(self) -> Scenario:
        """A case that shows what cases look like. Raises TeamError where there is none."""
        if self.sample is not None:
            return self.sample
        if self.generate is None:
            raise TeamError(f"team {self.name}: without generate=, give a sample= case")
        return self.generate("train", 0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A role as it is found in a framework."""

    name: AgentId
    brief: str
    tools: tuple[str, ...]
    following: frozenset[AgentId]
    """The seats that the case may go to from it."""
    may_end: bool
    """The case may end with it."""


def listed(tool: Tool, beside: Beside) -> list[ToolCall] | None:
    """The calls of a tool that the user lists; None: he lists none, so they follow from its schema."""
    if tool.name not in beside.calls:
        return None
    return [ToolCall(tool=tool.name, args=args) for args in beside.calls[tool.name]]
