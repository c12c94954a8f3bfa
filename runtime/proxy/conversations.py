"""Which conversation a request belongs to: the one that it names, or the one whose beginning it repeats.

System messages are no part of it, so that several roles that read one transcript are in one conversation. A request
goes on with a conversation if it begins with what was answered there, or if it repeats what another role was asked, or
what was asked to no avail. Two that say the same at the same time are two.
"""

import asyncio
import uuid
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from runtime.proxy.asked import Asked, Spoken, chained
from runtime.records import ToolCall

AMONG = 16
"""Conversations of the same beginning that are looked at, the newest: whatever is asked all the time, too."""
Standing = Literal["open", "answered", "failed"]


@dataclass(slots=True)
class Pending:
    """A call that a role was told to make, and whose answer has not been seen."""

    role: str
    turn: int
    call: ToolCall


@dataclass(slots=True)
class Conversation:
    """A run of the program's team, as far as it is known here."""

    id: str
    seen_at: float
    """When it was last gone on with (Unix time, s)."""
    name: str = ""
    """What the program calls it; empty: nothing. Another one of that name may be over."""
    served: bool | None = None
    """Whether the trained version plays its role here; None: it has not been decided."""
    version: str = ""
    """The version that plays it, where that is known."""
    opened: bool = False
    """Its opening is on record."""
    lost: bool = False
    """Some of its records were lost: it is not to be learnt from."""
    busy: int = 0
    """Requests of it that are being answered."""
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """There are none, and there has been one."""
    over: bool = False
    """It is no longer open: what is answered now is no part of it."""
    turns: Counter[str] = field(default_factory=Counter[str])
    """Decisions of each role so far."""
    pending: dict[str, Pending] = field(default_factory=dict[str, Pending])
    """By the id that the answer will carry."""
    authors: dict[str, str] = field(default_factory=dict[str, str])
    """Who made a call, by its id; who said something, by the name of the beginning that ends with it."""
    asked: dict[tuple[str, str], Standing] = field(default_factory=dict[tuple[str, str], Standing])
    """By what was asked (the name of its beginning) and by whom."""
    points: set[str] = field(default_factory=set[str])
    """Beginnings by which it is found."""


class Conversations:
    """Those that are open.

    Args:
        most: how many are remembered; the one that was longest silent is forgotten first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[str, Conversation] = OrderedDict()
        self._names: dict[str, str] = {}
        self._at: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def named(self, name: str) -> Conversation | None:
        """The open conversation of that name or id."""
        return self._open.get(self._names.get(name, name))

    def of(self, asked: Asked, role: str) -> Conversation | None:
        """The conversation that a request without a name goes on with; None: it is a new one."""
        chain = asked.beginnings
        for place in reversed(range(len(chain))):
            follows = asked.spoken[place + 1] if place + 1 < len(chain) else None
            for name in self._at.get(chain[place], ())[-AMONG:]:
                found = self._open[name]
                if _fits(found, chain[place], role, follows):
                    return found
        return None

    def begin(self, at: float, name: str = "", own: str = "") -> Conversation:
        """A new conversation; ``own``: its id, where the program calls it by a name."""
        made = Conversation(own or uuid.uuid4().hex, at, name)
        self._open[made.id] = made
        if name:
            self._names[name] = made.id
        return made

    def go_on(self, found: Conversation, asked: Asked, role: str, at: float) -> None:
        """Note that a role asks."""
        found.seen_at = at
        found.busy += 1
        found.quiet.clear()
        found.asked[asked.point, role] = "open"
        self._find_by(found, asked.point)
        self._open.move_to_end(found.id)

    def answered(self, found: Conversation, role: str, point: str, said: Spoken | None) -> None:
        """Note what came of it; None: nothing."""
        found.busy -= 1
        if not found.busy:
            found.quiet.set()
        found.asked[point, role] = "failed" if said is None else "answered"
        if said is not None and not found.over:
            (after,) = chained(point, [said])
            found.authors[after] = role
            self._find_by(found, after)

    def forgotten(self) -> list[Conversation]:
        """The conversations that there is no room for any more; they are no longer open."""
        idle = [c for c in self._open.values() if not c.busy][: max(len(self._open) - self._most, 0)]
        return [self.close(c) for c in idle]

    def silent(self, since: float) -> list[Conversation]:
        """Those that nobody has gone on with since then (Unix time, s); they are no longer open."""
        return [self.close(c) for c in list(self._open.values()) if not c.busy and c.seen_at < since]

    def all(self) -> list[Conversation]:
        """Every open conversation."""
        return list(self._open.values())

    def close(self, found: Conversation) -> Conversation:
        """Forget a conversation."""
        found.over = True
        self._open.pop(found.id, None)
        self._names.pop(found.name, None)
        for point in found.points:
            left = [name for name in self._at[point] if name != found.id]
            if left:
                self._at[point] = left
            else:
                del self._at[point]
        found.points.clear()
        return found

    def _find_by(self, found: Conversation, point: str) -> None:
        if point and point not in found.points:
            found.points.add(point)
            self._at.setdefault(point, []).append(found.id)


def _fits(found: Conversation, point: str, role: str, follows: Spoken | None) -> bool:
    """Whether a request with that known beginning belongs to a conversation.

    One that is nothing more: if the role has not asked it yet, or to no avail. One that goes on: if the beginning ends
    with an answer of the conversation, or an answer follows.
    """
    if follows is None:
        return found.asked.get((point, role), "failed") == "failed"
    return point in found.authors or follows.role == "assistant"
