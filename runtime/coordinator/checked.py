"""What the bus does for its agents at both ends, for agents that are told their events: contracts, and who is there."""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.actor.behaviour import Behaviour, Outcome
from runtime.bus.contracts import Agreements
from runtime.bus.errors import NoSuchRole
from runtime.bus.event import Event
from runtime.errors import TeamError
from runtime.records import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedMaker:
    """Makes a behaviour whose words are checked before anything of the event is committed."""

    team: str
    make: Callable[[], Behaviour]
    roles: tuple[str, ...]
    """Whoever gets events."""
    agreed: Agreements

    def __call__(self) -> "Checked":
        """Make it, in its own process."""
        return Checked(self.make(), self)


class Checked:
    """A behaviour, held to what the roles have agreed on."""

    def __init__(self, inner: Behaviour, how: CheckedMaker) -> None:
        self._inner, self._how = inner, how

    @property
    def schema(self) -> int:
        """The version of the state's form."""
        return self._inner.schema

    def handle(self, state: Json, event: Event) -> Outcome:
        """Deal with an event.

        Raises:
            ContractBroken: what came, or what is to be passed on, is not what was agreed on.
            NoSuchRole: it is for nobody.
            TeamError: it is to be sent later, which only the bus can.
        """
        self._how.agreed.accepted(event)
        outcome = self._inner.handle(state, event)
        for send in outcome.sends:
            if send.to not in self._how.roles:
                raise NoSuchRole(self._how.team, send.to, self._how.roles)
            if send.delay_s:
                raise TeamError(f"{event.to} sends {send.to} something for later: that takes `coordinator: embedded`")
            self._how.agreed.checked(Event(to=send.to, sender=event.to, payload=send.payload))
        return outcome
