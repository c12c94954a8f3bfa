"""From a session that is over to what its version is judged by."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from rewards.mix import Mix
from runtime.records import EpisodeOpened
from runtime.store import history, pins
from runtime.store.tables import PINS
from serving.rollout.kept import TERMS, Docket, note, note_reward, unsettled
from serving.rollout.outcome import Outcome, outcome_of, own_reward


@dataclass(frozen=True, kw_only=True, slots=True)
class Over:
    """A session that is over, or whose turn failed, as whoever served it knows it."""

    session: str
    version: str
    """The alias of its version."""
    terms: Collection[str] = ()
    """The names of the version's terms that are judged live (``blind_terms``)."""
    failed: bool = False
    """A turn of it was answered with an error, and left no record of that."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What is known of versions, beside their names."""

    alias: Callable[[str], str] = str
    """The alias of a version, from its alias or the hash of its content."""
    terms: Callable[[str], Collection[str]] = lambda _: ()
    """By alias: the names of its terms that are judged live."""


def blind_terms(judge: Mix) -> frozenset[str]:
    """The names of those terms that can be judged where no truth is known. Terms of weight 0 pay nothing."""
    return frozenset(w.term.name for w in judge.terms if "truth" not in w.term.reads and w.weight)


def settle(connection: Connection, team: str, over: Over, at: float) -> bool:
    """Note what a session came to, in the caller's transaction; whether it was new. Twice does no more than once.

    Args:
        connection: a transaction on a store that has the tables (``make_tables``).
        team: whose session it was.
        over: which, and what is known of it.
        at: now (Unix time, s).
    """
    records = history.of_session(connection, team, over.session)
    outcome = outcome_of(records, over.version, failed=over.failed) or _unbegun(connection, team, over)
    if outcome is None or not note(connection, team, outcome, at):
        return False
    paid = own_reward(records, over.terms)
    if paid is not None:
        note_reward(connection, team, over.session, TERMS, paid, at)
    return True


def _unbegun(connection: Connection, team: str, over: Over) -> Outcome | None:
    """What a session came to whose first turn failed: it has no records, and was opened when it was pinned."""
    c = PINS.c
    opened = connection.execute(select(c.at).where(c.team == team, c.session == over.session)).scalar()
    if not over.failed or opened is None:
        return None
    return Outcome(session=over.session, version=over.version, opened=opened, error=True)


def sweep(connection: Connection, team: str, kept: Docket, versions: Versions, at: float) -> int:
    """Settle the sessions that have ended by their records and that nobody has settled; how many."""
    found = unsettled(connection, team, kept.swept)
    for number, session in found:
        played = pins.pinned(connection, team, session) or _recorded(connection, team, session)
        if played:
            alias = versions.alias(played)
            settle(connection, team, Over(session=session, version=alias, terms=versions.terms(alias)), at)
        kept.swept = max(kept.swept, number)
    return len(found)


def _recorded(connection: Connection, team: str, session: str) -> str:
    """The version that a session's opening names."""
    records = history.of_session(connection, team, session)
    return next((r.version for r in records if isinstance(r, EpisodeOpened)), "")
