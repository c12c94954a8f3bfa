"""A team on stage with Temporal in the place of the bus: a session is a workflow, a role's turn an activity."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Self

from assembly.fit import agreements
from assembly.giving_up import given_up
from assembly.live import CLIENT, USUAL, Manner, opening
from assembly.stage_live import WINDOW, Ended, Unfinished
from assembly.versions import Version
from runtime.actor.agent import Reply
from runtime.actor.spec import AgentSpec
from runtime.bus.event import Event
from runtime.coordinator.checked import CheckedMaker
from runtime.coordinator.temporal import Coordinator
from runtime.records import AnyRecord, Json
from runtime.seams import digest
from runtime.store import history, marks, open_store
from runtime.tools import canonical
from runtime.types import AgentId, Scenario

if TYPE_CHECKING:
    from runtime.coordinator.chain import Ending

LOOK_S = 0.5
"""Pause between two looks at whether this process still does turns, s."""


def told_specs(specs: Mapping[AgentId, AgentSpec], version: Version) -> list[AgentSpec]:
    """The agents of a team, told their events in place of reading them from the bus."""
    team = version.team
    roles = (*(r.name for r in team.roles), CLIENT)
    return [
        replace(s, bus=None, make=CheckedMaker(team=team.name, make=s.make, roles=roles, agreed=agreements(team)))
        for s in specs.values()
    ]


class TemporalStage:
    """Opens sessions and hears their ends; turns are done by this process's agents.

    Args:
        store: the store's URL. Sessions belong to it: on the same one they are found again, whoever was killed.
        version: what plays.
        tell: has one of the team's agents, on that store, deal with an event, once.
        address: the Temporal server's ``HOST:PORT``.
        manner: how the agents play.

    Raises:
        ServiceUnavailable: temporalio is not installed, or the server does not answer.
    """

    def __init__(
        self, store: str, version: Version, tell: Callable[[Event], Reply], address: str, manner: Manner = USUAL
    ) -> None:
        self.version = version
        self._closing = ExitStack()
        self._store = open_store(store)
        self._closing.callback(self._store.close)
        which = digest(self._store.write(marks.identity), manner.greedy, manner.seed)
        self._queue = f"repertory:{version.team.name}:{version.name}:{which:016x}"
        self.dead = 0
        """Events that were given up."""
        try:
            self._coordinator = Coordinator(address, self._queue, tell=tell, give_up=self._give_up)
        except BaseException:
            self._closing.close()
            raise
        self._closing.callback(self._coordinator.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def session_of(self, scenario: Scenario) -> str:
        """The session on a scenario: one in each store for each version and manner, also after a restart."""
        return f"{digest(self._queue, canonical(opening(scenario))):016x}"

    def run(self, scenarios: Iterable[Scenario], *, window: int = WINDOW, silence_s: float = 60.0) -> Iterator[Ended]:
        """Play scenarios, so many at once, and yield each as it ends; one that had ended before is not played again.

        Raises:
            Unfinished: no session has ended for that long (s), though some are open.
        """
        left = iter(scenarios)
        waiting: dict[Future[Ending], tuple[str, Scenario]] = {}
        more = True
        while more or waiting:
            while more and len(waiting) < window:
                scenario = next(left, None)
                more = scenario is not None
                if scenario is not None:
                    waiting[self._open(scenario)] = (self.session_of(scenario), scenario)
            for done in self._next(list(waiting), silence_s):
                yield self._ended(done.result(), *waiting.pop(done))

    def records(self, session: str) -> list[AnyRecord]:
        """Everything on record of a session."""
        return self._store.read(lambda c: history.of_session(c, self.version.team.name, session))

    def _open(self, scenario: Scenario) -> "Future[Ending]":
        from runtime.coordinator.chain import Told

        first = self.version.team.turns.order[0]
        session = self.session_of(scenario)
        return self._coordinator.open(
            Told(session=session, number=0, sender=CLIENT, to=first, payload=opening(scenario))
        )

    def _next(self, waiting: "Sequence[Future[Ending]]", silence_s: float) -> "set[Future[Ending]]":
        deadline = monotonic() + silence_s
        while waiting:
            done, _ = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            if done:
                return done
            if self._coordinator.failure is not None:
                raise self._coordinator.failure
            if monotonic() > deadline:
                raise Unfinished(f"{len(waiting)} sessions did not end")
        return set()

    def _ended(self, ending: "Ending", session: str, scenario: Scenario) -> Ended:
        self.dead += ending.given_up
        if ending.given_up:
            return Ended(session, scenario.id, success=False, outcome=ending.payload)
        return Ended(session, scenario.id, success=ending.payload["success"], outcome=ending.payload["outcome"])

    def _give_up(self, session: str, reason: str) -> Json:
        complete = given_up(self._store, self.version.team, session, reason)
        return {"given_up": reason, "undone": complete}
