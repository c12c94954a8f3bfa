"""The conversations that go through, from their first request to their end, and what is noted of them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic

from sqlalchemy.exc import SQLAlchemyError

from runtime.errors import RepertoryError
from runtime.proxy import telling
from runtime.proxy.asked import Asked
from runtime.proxy.conversations import Conversation, Conversations
from runtime.proxy.exchange import Exchange, Spent
from runtime.proxy.ledger import Ledger
from runtime.proxy.roles import NAME, hint_of, role_of
from runtime.proxy.said import Said
from runtime.proxy.seen import seen_by
from runtime.proxy.settings import Settings, provider_of
from runtime.records import EpisodeEnded, Feedback, Json, Record
from runtime.seams import Clock, now

_log = logging.getLogger(__name__)
LOOKED_UP_S = 2.0
"""How long the store may take to tell of a conversation that names itself (s): then it goes on as if it were new, and
nobody learns from it, since it may not be."""
LOOK_S = 1.0
"""Pause between two looks for conversations that are over (s)."""
SETTLED_S = 2.0
"""How long a conversation's end waits for answers that are still on their way (s): a program may say that it is over as
soon as it has read the last one, which is before that is on record."""


class Desk:
    """Keeps the conversations.

    Args:
        settings: how roles are known, and how long a conversation may be silent.
        ledger: where records go.
        clock: their time.
    """

    def __init__(self, settings: Settings, ledger: Ledger, clock: Clock = now) -> None:
        self._roles, self._bounds, self._ledger, self._clock = settings.roles, settings.bounds, ledger, clock
        self._open = Conversations(settings.bounds.conversations)
        serve = settings.serve
        self._served = (serve.role, f"{provider_of(serve.url)}/{serve.model}") if serve else ("", "")
        self._finding: dict[str, asyncio.Task[Conversation]] = {}

    async def begin(self, asked: Asked, headers: Mapping[str, str]) -> Exchange:
        """Note a question, and what tools have answered since the last one."""
        began, at = monotonic(), self._clock()
        role = role_of(asked, headers.get("x-agent-role", ""), self._roles)
        found = await self._conversation(asked, role, headers.get("x-session-id", ""), at)
        self._open.go_on(found, asked, role, at)
        for gone in self._open.forgotten():
            self._over(gone, {"ended": "forgotten"})
        answers = telling.answers(found, asked, at)
        if answers:
            self._ledger.note(found, answers)
        seen = seen_by(role, asked, found, self._roles)
        hint = hint_of(role, self._roles)
        return Exchange(found=found, asked=asked, role=role, hint=hint, seen=seen, at=at, began=began)

    def end(self, exchange: Exchange, said: Said | None, heard: Said | None, spent: Spent) -> None:
        """Note what came of a question.

        Args:
            exchange: the question.
            said: what the model decided; None: it said nothing, or nothing whole.
            heard: the same as the program heard it, and will repeat it.
            spent: who answered, and what it took.
        """
        found, at = exchange.found, self._clock()
        made: list[Record] = []
        if not found.opened:
            made.append(telling.opening(exchange, self._roles.team))
            found.opened = True
        if said is None:
            made.append(telling.unanswered(exchange, spent, at))
        else:
            made += telling.decisions(exchange, said, spent, at)
        spoken = heard.spoken() if heard else None
        self._open.answered(found, exchange.role, exchange.asked.point, spoken)
        if not found.over:
            self._ledger.note(found, made)

    def abandon(self, exchange: Exchange) -> None:
        """A question whose answer went through and cannot be kept: it was too long, or compressed in an unknown way."""
        _log.warning("an answer to %s is not recorded: it is too long or cannot be decoded", exchange.role)
        self._open.answered(exchange.found, exchange.role, exchange.asked.point, None)
        exchange.found.lost = True

    async def judge(self, name: str, value: float, decision: str | None, source: str) -> bool:
        """Note what a conversation, or a decision in it, was worth; whether there is such a conversation."""
        found = self._open.named(name)
        if found is None and not await self._read(name):
            return False
        about = found or Conversation(name, self._clock())
        said = Feedback(correlation_id=about.id, at=self._clock(), decision_id=decision, value=value, source=source)
        self._ledger.judge(about, said)
        return True

    async def finish(self, name: str, outcome: Mapping[str, Json], success: bool) -> bool:
        """End a conversation, after the answers in it that are on their way; whether it was open."""
        found = self._open.named(name)
        if found is None:
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(found.quiet.wait(), SETTLED_S)
        if found.over:
            return False
        self._over(self._open.close(found), outcome, success=success, cut=False)
        return True

    async def keep_looking(self, pause_s: float = LOOK_S) -> None:
        """End the conversations that have been silent for too long, again and again."""
        while True:
            await asyncio.sleep(pause_s)
            for gone in self._open.silent(self._clock() - self._bounds.idle_s):
                self._over(gone, {"ended": "idle"})

    def close(self) -> None:
        """End every conversation, and wait until that is on record."""
        self._ledger.wait()
        closed = [self._open.close(found) for found in self._open.all()]
        self._ledger.end([r for found in closed for r in self._end(found, {"ended": "stopped"})])
        self._ledger.close()

    # -- inside

    async def _conversation(self, asked: Asked, role: str, name: str, at: float) -> Conversation:
        if not NAME.fullmatch(name):
            return self._open.of(asked, role) or self._open.begin(at)
        known = self._open.named(name)
        if known is not None:
            return known
        if name not in self._finding:
            self._finding[name] = asyncio.create_task(self._looked_up(name, at))
            self._finding[name].add_done_callback(lambda _: self._finding.pop(name, None))
        return await asyncio.shield(self._finding[name])

    async def _looked_up(self, name: str, at: float) -> Conversation:
        """A conversation that the program names: as it stands in the store, or another of its name if it is over."""
        own, count = name, 1
        records = await self._read(own)
        while any(isinstance(r, EpisodeEnded) for r in records or ()):
            count += 1
            own = f"{name}.{count}"
            records = await self._read(own)
        found = self._open.begin(at, name, own)
        telling.resumed(found, records or (), *self._served)
        found.lost = records is None
        return found

    async def _read(self, name: str) -> Sequence[Record] | None:
        """What is on record of a conversation; None: the store does not say."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._ledger.read, name), LOOKED_UP_S)
        except (TimeoutError, SQLAlchemyError, RepertoryError):
            return None

    def _over(
        self, found: Conversation, outcome: Mapping[str, Json], *, success: bool = False, cut: bool = True
    ) -> None:
        """Note a conversation's end, if it has one."""
        if ended := self._end(found, outcome, success=success, cut=cut):
            self._ledger.note(found, ended)

    def _end(
        self, found: Conversation, outcome: Mapping[str, Json], *, success: bool = False, cut: bool = True
    ) -> list[Record]:
        """A conversation's end; none where it is not whole on record: then nobody learns from it."""
        if not found.opened or found.lost:
            return []
        return [telling.ending(found, self._clock(), outcome, success=success, truncated=cut)]
