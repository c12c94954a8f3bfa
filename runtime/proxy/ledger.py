"""Records on their way to the store. Whatever becomes of it, nobody who asks a model waits for it or hears of it."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from runtime.errors import RepertoryError
from runtime.proxy.conversations import Conversation
from runtime.records import AnyRecord, Feedback, Record
from runtime.store import Store, feedback, history

WAIT_S = 5.0
"""How long the store may take for the last records (s), when the proxy stops."""
_log = logging.getLogger(__name__)


class Ledger:
    """Writes what happened, in order, in the background.

    Args:
        store: where to.
        team: under which name.
        most: groups of records that may wait for the store.
    """

    def __init__(self, store: Store, team: str, most: int) -> None:
        self._store, self._team, self._most = store, team, most
        self._lock = Lock()
        self._waiting = self._lost = 0
        self.written = 0
        """Groups of records that are in the store."""

    @property
    def lost(self) -> int:
        """Groups of records that are not in the store since it last took some."""
        return self._lost

    def note(self, found: Conversation, records: Sequence[Record]) -> None:
        """Have a conversation's records written, all or none."""
        self._submit(found, lambda c: history.add(c, self._team, [(r, "") for r in records]))

    def judge(self, found: Conversation, said: Feedback) -> None:
        """Have a reward from outside written."""

        def add(connection: Connection) -> None:
            history.add(connection, self._team, [(said, "")])
            feedback.add(connection, self._team, said)

        self._submit(found, add)

    def read(self, name: str) -> list[AnyRecord]:
        """What is on record of a conversation."""
        return self._store.read(lambda c: history.of_session(c, self._team, name))

    def wait(self) -> None:
        """Wait until what was noted is written, or could not be: as long as the store may take, and no longer."""
        with suppress(SQLAlchemyError, RepertoryError, OSError):
            self._store.write(lambda _: None, within_s=WAIT_S)

    def end(self, endings: Sequence[Record]) -> None:
        """Write the last records of conversations, all at once, behind all that waits."""
        if not endings:
            return
        try:
            self._store.write(lambda c: history.add(c, self._team, [(r, "") for r in endings]), within_s=WAIT_S)
        except (SQLAlchemyError, RepertoryError, OSError) as error:
            _log.error("%d conversations have no end on record: %s", len(endings), type(error).__name__)

    def close(self) -> None:
        """Wait for what is being written, and close the store."""
        self._store.close()

    def _submit(self, found: Conversation, work: Callable[[Connection], None]) -> None:
        with self._lock:
            room = self._waiting < self._most
            self._waiting += room
        if not room:
            self._fail(found, f"{self._most} groups of records wait for the store")
            return
        try:
            self._store.submit(work, durable=False).add_done_callback(lambda done: self._done(found, done))
        except RuntimeError as error:  # it is closed
            self._settle()
            self._fail(found, str(error))

    def _done(self, found: Conversation, done: "Future[None]") -> None:
        self._settle()
        error = done.exception()
        if error is not None:
            self._fail(found, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            return
        with self._lock:
            lost, self._lost = self._lost, 0
            self.written += 1
        if lost:
            _log.warning("recording again; %d groups of records were lost", lost)

    def _settle(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _fail(self, found: Conversation, why: str) -> None:
        """Say it once, until it works again. A conversation that lacks records is not to be learnt from."""
        found.lost = True
        with self._lock:
            self._lost += 1
            first = self._lost == 1
        if first:
            _log.error("nothing is recorded, calls go through all the same: %s", why)
