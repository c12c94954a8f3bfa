"""The team under examination, with its tools watched, and ways to play it."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from envs.checks.findings import Fail, calling, place_of
from envs.scenarios import Source
from envs.session import Session
from runtime.records import Json, Record, ToolCall
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN, AgentId, Observation, Scenario, Team, Tool

Chooser = Callable[[Observation, Random], Any]
"""Picks an action; anything at all, also nonsense."""
BUGS = (
    TypeError, AttributeError, NameError, KeyError, IndexError, ArithmeticError, AssertionError, ImportError,
    RecursionError, MemoryError, NotImplementedError, SystemExit,
)  # fmt: skip
"""What a tool raises by mistake; other exceptions may be its way to tell the agent something."""
LONGEST = 256
"""Decisions after which a check cuts an episode: several times a long one, and the check of a team that never ends a
case must end."""
MOST = 400
"""Decisions after which a check opens no further episode of the same kind."""


@dataclass(slots=True)
class Raised:
    """A tool raised."""

    tool: str
    args: dict[str, Json]
    error: Exception | SystemExit
    where: str


@dataclass(slots=True)
class Subject:
    """A team, where its scenarios come from, and how much of it to play."""

    given: Team
    source: Source
    episodes: int
    raised: list[Raised] = field(default_factory=list[Raised])
    """What the tools raised, over all plays."""
    team: Team = field(init=False)
    """The same team, with its tools watched, and its episodes bounded."""
    decided: int = 0
    """Decisions in all plays."""

    def __post_init__(self) -> None:
        watched = {name: dataclasses.replace(t, run=self._watched(t)) for name, t in self.given.tools.items()}
        self.team = dataclasses.replace(self.given, tools=watched, max_turns=min(self.given.max_turns, LONGEST))

    def _watched(self, tool: Tool) -> Callable[..., Json]:
        def run(world: Any, **args: Json) -> Json:
            try:
                return tool.run(world, **args)
            except (Exception, SystemExit) as error:
                self.raised.append(Raised(tool.name, args, error, place_of(error)))
                raise

        return run

    def scenario(self, index: int) -> Scenario:
        """Scenario of that index. Raises Fail when the team's code does not make it."""
        made: object = calling(f"making scenario {index}", lambda: self.source(index))
        return a_scenario(made, f"making scenario {index}")

    def scenarios(self, limit: int | None = None) -> Iterator[Scenario]:
        """As many different scenarios as are to be played: fewer where they take very long."""
        before = self.decided
        for index in range(min(self.episodes, limit or self.episodes)):
            if self.source.epoch(index) or self.decided - before >= MOST:
                return
            yield self.scenario(index)

    def open(self, scenario: Scenario, seed: int = 0) -> Session:
        """A session whose clock stands still."""
        doing = f"making the world of scenario {scenario.id}"
        return calling(doing, lambda: Session(self.team, scenario, seed=seed, clock=lambda: 0.0))

    def play(self, scenario: Scenario, choose: Chooser, chance: int = 0) -> Session:
        """A whole episode."""
        session, rng = self.open(scenario), Random(chance)
        while not session.ended:
            self.step(session, choose, rng)
        return session

    def step(self, session: Session, choose: Chooser, rng: Random) -> list[Record]:
        """As ``step``, and count its decisions."""
        self.decided += len(session.to_act)
        return step(session, choose, rng)


def a_scenario(made: object, doing: str) -> Scenario:
    """What the generator made, if that is a scenario. Raises Fail."""
    if not isinstance(made, Scenario):
        raise Fail(doing, f"the generator returned {type(made).__name__}, not a Scenario", "Team.generate")
    return made


def step(session: Session, choose: Chooser, rng: Random) -> list[Record]:
    """Whoever is to act does; in a simultaneous round, everybody. Raises Fail when the team's code raises."""
    start = len(session.records)

    def go() -> None:
        actions = {a: choose(session.observe(a), rng) for a in session.to_act}
        if session.team.turns.kind == "simultaneous":
            session.act_all(actions)
        else:
            for agent, action in actions.items():
                session.act(agent, action)

    calling(f"playing scenario {session.scenario.id}", go)
    return session.records[start:]


def legal(seen: Observation) -> list[int]:
    """The legal candidates; raises Fail where there is none."""
    found = [i for i, ok in enumerate(seen.mask) if ok]
    if not found:
        raise NoLegalCall(seen.agent, seen.turn)
    return found


class NoLegalCall(Fail):
    """An agent came to a turn with nothing that it may call."""

    def __init__(self, agent: AgentId, turn: int) -> None:
        super().__init__(agent, str(turn), "")
        self.args = (agent, turn)
        self.agent, self.turn = agent, turn


def at_random(seen: Observation, rng: Random) -> int:
    """Uniform over the legal calls."""
    return rng.choice(legal(seen))


def first_legal(seen: Observation, _rng: Random) -> int:
    """The first legal call."""
    return legal(seen)[0]


def last_legal(seen: Observation, _rng: Random) -> int:
    """The last legal call."""
    return legal(seen)[-1]


def exhausting(team: Team, back: bool) -> Chooser:
    """Uses up every tool and budget before it lets go of the case; with ``back`` it returns the case when it can."""

    def choose(seen: Observation, rng: Random) -> int:
        found = legal(seen)
        tools = [i for i in found if not _final(team, seen.candidates[i])]
        passes = [i for i in found if seen.candidates[i].tool == (HAND_BACK if back else HAND_OVER)]
        return rng.choice(tools or passes or found)

    return choose


def _final(team: Team, call: ToolCall) -> bool:
    return call.tool in (HAND_OVER, HAND_BACK, PASS_TURN) or team.tools[call.tool].ends


def players(team: Team) -> dict[str, Chooser]:
    """Ways to play that every team must survive."""
    return {
        "random": at_random,
        "first legal": first_legal,
        "last legal": last_legal,
        "exhausting": exhausting(team, back=False),
        "returning": exhausting(team, back=True),
    }
