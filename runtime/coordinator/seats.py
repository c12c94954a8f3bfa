"""A team's agents, each a Ray actor that is told its events."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from runtime.actor.agent import Reply
from runtime.actor.hosted import AgentActor
from runtime.actor.hosting import local_ray
from runtime.actor.spec import AgentSpec
from runtime.bus.event import Event


@dataclass(frozen=True, slots=True)
class Seats:
    """Agents by role."""

    actors: Mapping[str, AgentActor]

    def tell(self, event: Event) -> Reply:
        """Have the role's agent deal with the event; it is asked again where its process dies over it."""
        return self.actors[event.to].tell(event)

    @property
    def pids(self) -> dict[str, int]:
        """The agents' process ids."""
        return {role: actor.health().pid for role, actor in self.actors.items()}


@contextmanager
def seated(specs: Sequence[AgentSpec]) -> Generator[Seats]:
    """Have agents live until the block ends."""
    with ExitStack() as closing:
        closing.enter_context(local_ray())
        actors: dict[str, AgentActor] = {}
        for spec in specs:
            actors[spec.role] = AgentActor.start(spec)
            closing.callback(actors[spec.role].stop)
        yield Seats(actors)
