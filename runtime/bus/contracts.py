"""What roles have agreed to say to each other: JSON Schemas with versions, checked at both ends, and side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.bus.errors import ContractBroken, Misfit
from runtime.bus.event import Event
from runtime.bus.schemas import misfits
from runtime.tools import Contract, canonical

ANYBODY = "*"
"""The sender in what a role takes from whoever sends it."""
SHOWN = 120
"""Characters of a faulty value that are shown."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One side's view of what goes from one role to another: what it sends, or what it takes."""

    sender: str
    to: str
    schema: Mapping[str, Any]
    """JSON Schema (Draft 2020-12) of the payload."""
    version: int = 1
    """One more whenever the meaning changes."""


@dataclass(frozen=True, kw_only=True)
class Agreements:
    """All of a team's. A pair of roles without one says whatever it likes."""

    sends: Sequence[Agreement] = ()
    takes: Sequence[Agreement] = ()
    _ready: dict[int, Contract] = field(default_factory=dict[int, Contract], repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is only kept at hand, which cannot be pickled."""
        return {"sends": self.sends, "takes": self.takes, "_ready": {}}

    def checked(self, event: Event) -> Event:
        """The event with its contract's version, at the sending end.

        Raises:
            ContractBroken: the payload is not what the sender promised.
        """
        promise = _of(self.sends, event)
        if promise is None:
            return event
        self._judge(promise, event)
        return replace(event, contract=promise.version)

    def accepted(self, event: Event) -> None:
        """See at the receiving end that the event can be read there.

        Raises:
            ContractBroken: its payload or version is not what the receiver takes.
        """
        need = _of(self.takes, event)
        if need is None:
            return
        if event.contract and event.contract != need.version:
            what = f"version {event.contract} was sent, version {need.version} is taken"
            raise ContractBroken(event.sender, event.to, "$", what)
        self._judge(need, event)

    def _judge(self, agreement: Agreement, event: Event) -> None:
        contract = self._ready.get(id(agreement))
        if contract is None:
            contract = self._ready[id(agreement)] = Contract(agreement.schema)
        problem = contract.problem(event.payload)
        if problem:
            raise ContractBroken(event.sender, event.to, problem[1], _told(problem[0], event.payload))


def check_fit(team: str, agreements: Agreements) -> None:
    """See that whatever a role sends can be read by the role it sends it to.

    Raises:
        Misfit: every field renamed, type narrowed, bound tightened or version apart, naming both roles.
    """
    problems = tuple(p for need in agreements.takes for p in _problems(need, agreements.sends))
    if problems:
        raise Misfit(team, problems)


def _problems(need: Agreement, sends: Sequence[Agreement]) -> list[str]:
    promises = [p for p in sends if p.to == need.to and need.sender in (p.sender, ANYBODY)]
    if not promises and need.sender != ANYBODY:
        return [f"{need.to} takes something from {need.sender}, but {need.sender} says nothing about what it sends"]
    found: list[str] = []
    for p in promises:
        pair = f"{p.sender} -> {need.to}"
        if p.version != need.version:
            found.append(f"{pair}: {p.sender} sends version {p.version}, {need.to} takes version {need.version}")
        found += [f"{pair}: {place}" for place in misfits(p.schema, need.schema, (p.sender, need.to))]
    return found


def _of(agreements: Sequence[Agreement], event: Event) -> Agreement | None:
    """The one for the pair, else the one for any sender."""
    for sender in (event.sender, ANYBODY):
        for agreement in agreements:
            if agreement.sender == sender and agreement.to == event.to:
                return agreement
    return None


def _told(problem: str, payload: Any) -> str:
    text = canonical(payload)
    return f"{problem} (payload {text if len(text) <= SHOWN else text[:SHOWN] + '…'})"
