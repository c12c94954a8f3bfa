"""An agent that is told its events keeps the contracts that the bus would hold it to, before anything is committed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.actor import Agent, AgentSpec, Outcome, Send
from runtime.bus import Event
from runtime.bus.contracts import Agreement, Agreements
from runtime.bus.errors import ContractBroken, NoSuchRole
from runtime.coordinator.checked import CheckedMaker
from runtime.errors import RepertoryError, TeamError
from runtime.records import Json

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
AGREED = Agreements(
    sends=[Agreement(sender="ear", to="voice", schema=COUNT)],
    takes=[Agreement(sender="client", to="ear", schema=COUNT)],
)


class Ear:
    """Passes on what its event says, and counts."""

    schema = 1

    def handle(self, state: int | None, event: Event) -> Outcome:
        count = (state or 0) + 1
        return Outcome(state=count, reply=count, sends=(Send(**event.payload["send"]),))


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Callable[[str, Json], Json]]:
    made = CheckedMaker(team="t", make=Ear, roles=("ear", "voice"), agreed=AGREED)
    agent = Agent(AgentSpec(team="t", role="ear", make=made, store=f"sqlite:///{tmp_path}/store.db"))

    def told(name: str, payload: Json) -> Json:
        return agent.tell(Event(to="ear", sender="client", correlation_id="s", event_id=name, payload=payload)).value

    yield told
    agent.stop()


def said(to: str, payload: Json, **more: Json) -> Json:
    return {"count": 0, "send": {"to": to, "payload": payload, **more}}


@pytest.mark.parametrize(
    ("payload", "refusal", "why"),
    [
        (said("voice", {"count": "three"}), ContractBroken, "ear -> voice"),
        ({"send": {"to": "voice", "payload": {"count": 3}}}, ContractBroken, "client -> ear"),
        (said("nose", {"count": 3}), NoSuchRole, "no role 'nose'"),
        (said("voice", {"count": 3}, delay_s=60.0), TeamError, "coordinator: embedded"),
    ],
    ids=["given", "taken", "for nobody", "for later"],
)
def test_what_is_not_agreed_on_is_refused_and_leaves_nothing(
    tell: Callable[[str, Json], Json], payload: Json, refusal: type[RepertoryError], why: str
) -> None:
    """The one at fault is named, and the agent's state is that of before."""
    assert tell("first", said("voice", {"count": 3})) == 1
    with pytest.raises(refusal, match=why):
        tell("second", payload)
    assert tell("third", said("voice", {"count": 3})) == 2
