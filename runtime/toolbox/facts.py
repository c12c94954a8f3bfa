"""What the agents of a team know together, as two tools and something to show.

    class Harbour:                                    # a world
        def __init__(self, scenario: Scenario) -> None:
            self.facts = SharedFacts()                # declares it

        def look(self, agent: str) -> Json:           # optional: everybody sees the board at each decision
            return self.facts.shown(agent)

    tools = {**fact_tools(["berth"], {"enum": ["free", "taken"]}), …}

Live, the board is the team's, in the store: what one session's agent puts up, every other one sees. In training and
evaluation it is the episode's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from runtime.errors import TeamError
from runtime.facts import Fact, FactChanged
from runtime.records import Json, Record, ToolAnswered
from runtime.seams import Clock, now
from runtime.types import AgentId, Outside, Tool

READ, PUT = "read_fact", "put_fact"
TEXT: Mapping[str, Any] = {"type": "string"}
KEY = "decision"
"""The tools' parameter for the decision's id. It names who says something, and makes it said once."""
STORE_S = 30.0
"""How long the board may take (s): as long as a transaction may wait for its turn."""


class Board(Protocol):
    """Where facts are kept (``runtime.facts.FactBoard``, or one in memory)."""

    def get(self, name: str) -> Fact | None:
        """The fact as it stands."""
        ...

    def put(self, name: str, value: Json, *, author: str, expected: int) -> Fact:
        """Put up a new version. Raises FactChanged if that is not the next one."""
        ...

    def said(self, name: str, author: str) -> Fact | None:
        """The last version that this author put up."""
        ...

    def all(self) -> dict[str, Fact]:
        """Everything that is known, by name."""
        ...


class MemoryBoard:
    """The board of one episode."""

    def __init__(self, known: Mapping[str, Json] | None = None, clock: Clock = now) -> None:
        self._clock = clock
        self._facts: dict[str, list[Fact]] = {}
        """Every version, the first one first; no name without one."""
        for name, value in (known or {}).items():
            self.put(name, value, author="", expected=0)

    def get(self, name: str) -> Fact | None:
        """The fact as it stands."""
        return self._facts.get(name, [None])[-1]

    def put(self, name: str, value: Json, *, author: str, expected: int) -> Fact:
        """Put up a new version. Raises FactChanged if that is not the next one."""
        versions = self._facts.get(name, [])
        if len(versions) != expected:
            raise FactChanged(name, expected, len(versions))
        fact = Fact(name=name, value=value, version=expected + 1, author=author, at=self._clock())
        self._facts[name] = [*versions, fact]
        return fact

    def said(self, name: str, author: str) -> Fact | None:
        """The last version that this author put up."""
        return next((f for f in reversed(self._facts.get(name, [])) if f.author == author), None)

    def all(self) -> dict[str, Fact]:
        """Everything that is known, by name."""
        return {name: versions[-1] for name, versions in sorted(self._facts.items())}


class SharedFacts:
    """A session's view of the board: it remembers which version each agent has seen.

    Args:
        known: what is known at the start of an episode. Live, what the store has holds.
    """

    def __init__(self, known: Mapping[str, Json] | None = None) -> None:
        self._board: Board = MemoryBoard(known)
        self._seen: dict[tuple[AgentId, str], int] = {}

    def move(self, board: Board, records: Iterable[Record]) -> None:
        """From now on look at this board, as a session with these records left it."""
        self._board, self._seen = board, {}
        for r in records:
            if isinstance(r, ToolAnswered) and r.ok and r.tool in (READ, PUT):
                told = cast("Mapping[str, Json]", r.value)
                if "version" in told:  # an answer that was too long was cut: whoever got it must read again
                    self._seen[r.agent, told["name"]] = told["version"]

    def shown(self, agent: AgentId) -> Json:
        """Everything that is known, for the agent to see; None: nothing is."""
        facts = self._board.all()
        self._seen.update({(agent, name): fact.version for name, fact in facts.items()})
        return {name: _told(fact) for name, fact in facts.items()} or None

    def read(self, name: str, decision: str) -> Json:
        """What is known about something."""
        fact = self._board.get(name)
        self._seen[_agent(decision), name] = fact.version if fact else 0
        return _told(fact) if fact else {"name": name, "value": None, "version": 0}

    def put(self, name: str, value: Json, decision: str) -> Json:
        """Put something up, if the agent has seen its newest version. Said again by the same decision, it stands once.

        Raises:
            FactChanged: somebody else has changed it since the agent saw it.
        """
        agent = _agent(decision)
        fact = self._board.said(name, decision)
        if fact is None:
            expected = self._seen.get((agent, name), 0)
            fact = self._board.put(name, value, author=decision, expected=expected)
        self._seen[agent, name] = fact.version
        return _told(fact)


def fact_tools(names: Sequence[str], values: Mapping[str, Any] = TEXT) -> dict[str, Tool]:
    """The tools ``read_fact`` and ``put_fact``, for a team whose world has ``facts``.

    Args:
        names: what there is to know something about.
        values: JSON Schema of what can be known; an enumeration, for policies that choose among calls.
    """
    about: Mapping[str, Any] = {"enum": list(names)}

    def read(world: object, name: str, decision: str) -> Json:
        return facts_of(world).read(name, decision)

    def put(world: object, name: str, value: Json, decision: str) -> Json:
        return facts_of(world).put(name, value, decision)

    how = Outside(timeout_s=STORE_S, key=KEY, idempotent=True, rerun=True)
    return {
        READ: Tool(
            name=READ,
            description="What the team knows about something, with its version.",
            input_schema=_object({"name": about}),
            output_schema=_object({"name": about, "value": {}, "version": {"type": "integer"}}),
            run=read,
            outside=how,
        ),
        PUT: Tool(
            name=PUT,
            description="Tell the team. It fails if somebody else has changed that since you saw it: read it again.",
            input_schema=_object({"name": about, "value": values}),
            output_schema=_object({"name": about, "value": {}, "version": {"type": "integer"}}),
            run=put,
            outside=how,
        ),
    }


def facts_of(world: object) -> SharedFacts:
    """What a team's world shares.

    Raises:
        TeamError: it shares nothing.
    """
    facts = getattr(world, "facts", None)
    if not isinstance(facts, SharedFacts):
        raise TeamError(f"{type(world).__name__} shares no facts: its constructor says `self.facts = SharedFacts()`")
    return facts


def _told(fact: Fact) -> dict[str, Json]:
    return {"name": fact.name, "value": fact.value, "version": fact.version}


def _agent(decision: str) -> AgentId:
    """Whose decision that is: SESSION/AGENT/TURN."""
    return decision.rsplit("/", 2)[1]


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
