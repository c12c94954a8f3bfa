"""What a router does: finds a session's version, has it play, and tries again on the same version when it must.

A desk holds no truth. What it remembers of pins saves a question and may be wrong: the version that is asked looks into
the store, and says where the session belongs.
"""

import asyncio
import logging
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from runtime.records import Json
from runtime.seams import Clock, digest, now
from serving.access import Access, Caller
from serving.errors import Busy, Failed, Impossible, Late, NoSuchSession, NotNow
from serving.openai_api.asked import Chat, Piece
from serving.pins import Pin, Pins
from serving.playing import Answer, first_state, look
from serving.settings import Limits
from serving.versions import Versions
from serving.views import Views

_log = logging.getLogger(__name__)
REMEMBERED = 20_000
"""Pins that a router remembers: a few MB."""
THREADS = 16
"""Threads for what waits for the store or Redis: a store commits what waits together."""
LOOK_S = 0.3
"""Pause between two looks at versions and ratios (s): a ratio is to be seen within a second."""
DETOURS = 3
"""How often a turn is sent on because the session belongs to another version: more than once only while it is moved."""
CHAT: Json = {"chat": {}}
"""What opens a session that is talked to: its turns are its client's, and none of them is played here."""
TURNS = 1000
"""Turns of a whole chain: more than any team has."""


class Reach(Protocol):
    """How versions are reached."""

    async def turn(self, team: str, alias: str, session: str, key: str, within_s: float) -> Answer:
        """Have a version play a turn, trying again on the same one while it is not there.

        Raises:
            Busy: too many wait for it already, or it has not been there for that long (s).
            ServingError: it took longer than that.
        """
        ...

    def say(self, team: str, alias: str, chat: Chat, within_s: float) -> AsyncGenerator[Piece]:
        """Have a version go on with a chat, piece by piece; tried again on the same one before the first piece.

        Raises:
            Busy: as for a turn, or the version was lost after it had begun.
            ServingError: it took longer than that.
        """
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that has been opened."""

    session: str
    version: str


class Desk:
    """Sessions and their turns, for one router.

    Args:
        versions: the teams' versions.
        pins: which session belongs to which.
        access: whose sessions are whose.
        reach: how versions are reached.
        limits: of time.
    """

    def __init__(
        self, versions: Versions, pins: Pins, access: Access, reach: Reach, limits: Limits, clock: Clock = now
    ) -> None:
        self.versions, self.access, self.views = versions, access, Views(versions)
        self._pins, self._reach, self._limits, self._clock = pins, reach, limits, clock
        self._statistics: dict[tuple[str, str], Mapping[str, Json] | None] = {}
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="desk")

    # -- beside requests

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.away(self.views.refresh)
            except Exception as error:  # noqa: BLE001 - the last view serves on, and readiness tells
                _log.warning("versions could not be looked at: %r", error)

    async def away(self, function: Any, *args: Any) -> Any:
        """Do something that waits, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- sessions

    async def open(self, team: str, caller: Caller, payload: Json, *, wish: str = "", key: str = "") -> Opened:
        """Open a session and pin it; with a key, the same session again for the same key.

        Raises:
            NotNow: the version asked for gets no new sessions, or the key was used for something else.
        """
        session = self.access.session(caller, team, key)
        state = first_state(payload, f"{digest(str(payload)):016x}")
        known: Pin | None = await self.away(self._pins.right, team, session) if key else None
        alias, new = (known.version, False) if known else await self._first(team, session, wish, state)
        if not new:
            self._agrees(team, alias, wish)
            await self.away(self._same, team, session, state)
        self._remember(team, session, alias)
        return Opened(session, alias)

    async def _first(self, team: str, session: str, wish: str, state: Json) -> tuple[str, bool]:
        """Pin a session; its version, and whether nobody else had pinned it."""
        chosen = self.views.of(team).choose(session, wish)
        try:
            return await self.away(self._pins.open, team, session, chosen, state)
        except NotNow:  # it has just been drained: look again
            await self.away(self.views.refresh)
            chosen = self.views.of(team).choose(session, wish)
            return await self.away(self._pins.open, team, session, chosen, state)

    async def turn(
        self, team: str, caller: Caller, session: str, *, key: str = "", wish: str = "", within_s: float | None = None
    ) -> tuple[str, Mapping[str, Json]]:
        """Play a session's next turn, once for each key; the version that played it, and what it came to.

        Raises:
            NoSuchSession: there is none, or it belongs to somebody else.
            NotNow: it is over, or belongs to another version than the one asked for.
            Busy: its version cannot be reached.
        """
        self.access.check(caller, team, session)
        pin, name = await self._pin(team, session), key or f"auto:{uuid.uuid4().hex}"
        alias = pin.version
        self._agrees(team, alias, wish)
        if not pin.open:
            return alias, await self.away(self._answered, team, session, name)
        for _ in range(DETOURS):
            answer = await self._reach.turn(team, alias, session, name, within_s or self._limits.turn_s)
            if answer.get("status") != "elsewhere":
                return alias, self._turn(answer)
            alias = answer.get("version", alias)
            self._remember(team, session, alias)
            await self.away(self._pins.correct, team, session, alias)
            self._agrees(team, alias, wish)
        raise Busy("moving", "the session is just being moved to another version")

    async def end(self, team: str, caller: Caller, session: str) -> str:
        """End a session; the version it was on. Ending it twice is no error."""
        self.access.check(caller, team, session)
        pin = await self.away(self._pins.right, team, session)
        if pin is None:
            raise NoSuchSession
        if pin.open:
            await self.away(self._pins.end, team, session)
        self._known.pop((team, session), None)
        return pin.version

    async def run(
        self, team: str, caller: Caller, payload: Json, *, wish: str = "", key: str = ""
    ) -> tuple[Opened, list[Mapping[str, Json]]]:
        """Open a session and play it to its end: all its turns. With a key, a run that was cut off goes on."""
        opened = await self.open(team, caller, payload, wish=wish, key=key and f"run:{key}")
        deadline = monotonic() + self._limits.run_s
        turns: list[Mapping[str, Json]] = []
        while len(turns) < TURNS and not (turns and turns[-1]["ended"]):
            left = min(self._limits.turn_s, deadline - monotonic())
            if left <= 0:
                raise Late(
                    "late", f"the chain was not over within {self._limits.run_s:g} s; the same key goes on with it"
                )
            _, turn = await self.turn(team, caller, opened.session, key=f"run:{len(turns)}", within_s=left)
            turns.append(turn)
        return opened, turns

    async def talk(self, team: str, caller: Caller, name: str, wishes: tuple[str, str]) -> Opened:
        """Where a chat belongs: to a session of that name, which is opened by its first chat, or to none (of one turn).

        Args:
            team: whose role is talked to.
            caller: sessions are theirs, whatever names others give.
            name: of the session; empty: the chat is by itself, and nothing is kept of it.
            wishes: versions asked for, or nothing.

        Raises:
            NotNow: the session is over, or belongs to another version, or the wishes contradict each other.
        """
        first, second = wishes
        view = self.views.of(team)
        if first and second and view.alias(first) != view.alias(second):
            raise NotNow("other_version", f"the model asks for {first}, the header for {second}")
        wish = first or second
        if not name:
            session = self.access.session(caller, team)
            return Opened(session, view.choose(session, wish))
        opened = await self.open(team, caller, CHAT, wish=wish, key=f"chat:{name}")
        if not await self.away(self._pins.alive, team, opened.session, opened.version):
            raise NotNow("over", "the session is over")
        return opened

    def say(self, team: str, opened: Opened, chat: Chat) -> AsyncGenerator[Piece]:
        """Have the version that a chat belongs to go on with it."""
        return self._reach.say(team, opened.version, chat, self._limits.turn_s)

    def played(self, team: str, session: str) -> tuple[str, Mapping[str, Json] | None]:
        """The version that a session is or was played by, and its frozen reward statistics. Raises NoSuchSession."""
        pin = self._pins.right(team, session)
        if pin is None:
            raise NoSuchSession
        if (team, pin.version) not in self._statistics:
            content = self.versions.version(team, pin.version).hash
            found = self.versions.registries[team].json(content, "standardizer.json")
            self._statistics[team, pin.version] = found
        return pin.version, self._statistics[team, pin.version]

    def now(self) -> float:
        """Unix time, s."""
        return self._clock()

    # -- inside

    async def _pin(self, team: str, session: str) -> Pin:
        view = self.views.of(team)
        known = self._known.get((team, session))
        if known and view.served(known):
            return Pin(known)
        pin: Pin | None = await self.away(self._pins.find, team, session)
        if pin is not None and not view.served(pin.version):
            pin = await self.away(self._pins.right, team, session)
        if pin is None:
            raise NoSuchSession
        self._remember(team, session, pin.version)
        return pin

    def _answered(self, team: str, session: str, key: str) -> Mapping[str, Json]:
        """What a turn of a session that is over came to."""
        asked = self.versions.store.read(lambda c: look(c, team, session, key))
        if asked.answered is None:
            raise NotNow("over", "the session is over")
        return asked.answered

    def _agrees(self, team: str, alias: str, wish: str) -> None:
        if wish and self.views.of(team).alias(wish) != alias:
            raise NotNow("other_version", f"the session belongs to {alias}, not to {wish}: a session never changes it")

    def _same(self, team: str, session: str, state: Mapping[str, Json]) -> None:
        asked = self.versions.store.read(lambda c: look(c, team, session, ""))
        if asked.snapshot is not None and asked.snapshot.state.get("asked") != state["asked"]:
            raise NotNow("key_reused", "this idempotency key opened a session on another case")

    def _turn(self, answer: Answer) -> Mapping[str, Json]:
        message = answer.get("message", "")
        match answer.get("status"):
            case "ok":
                return answer.get("turn", {})
            case "no_such_session":
                raise NoSuchSession
            case "over":
                raise NotNow("over", message)
            case "busy":
                raise Busy("busy", message)
            case "impossible":
                raise Impossible("impossible", message)
            case _:
                raise Failed("failed", message)

    def _remember(self, team: str, session: str, alias: str) -> None:
        self._known[team, session] = alias
        self._known.move_to_end((team, session))
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
