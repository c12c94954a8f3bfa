"""From the outbox onto the streams: a batch at a time, each event also into the complete log."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from redis.exceptions import RedisError

from runtime.bus.event import FIELDS
from runtime.bus.names import LOG
from runtime.bus.parts import Parts
from runtime.store import outbox
from runtime.store.outbox import Row

BATCH = 256
"""Events sent in one go."""
MARK_S = 0.05
"""How long it may take until the store is told that events were sent (s): many are noted in one transaction."""
LOGGED = (*FIELDS, "stream")
"""The fields in the complete log: an entry without ``stream`` was made by hand, and is routed."""
_log = logging.getLogger(__name__)


def append(parts: Parts, rows: Sequence[Row]) -> list[str]:
    """Put events onto their streams and into the log: their entry ids, in order.

    Raises:
        redis.RedisError: some may be there, some not; sent again, they may be there twice.
    """
    streams: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        streams.setdefault(row.stream, []).append(i)
    together = parts.names.shards == 1  # else the log may be on another node than the stream
    pipeline = parts.client.pipeline(transaction=False)
    for stream, places in streams.items():
        values = [v for i in places for v in rows[i].values]
        keys = [stream, LOG] if together else [stream]
        parts.scripts.append(keys=keys, args=[len(FIELDS), *FIELDS, *values], client=pipeline)
    if not together:
        logged = [v for row in rows for v in (*row.values, row.stream)]
        parts.scripts.append(keys=[LOG], args=[len(LOGGED), *LOGGED, *logged], client=pipeline)
    answers = pipeline.execute()[: len(streams)]
    entries = [""] * len(rows)
    for places, ids in zip(streams.values(), answers, strict=True):
        for i, entry in zip(places, ids, strict=True):
            entries[i] = entry.decode()
    return entries


class Relay:
    """Sends what this process has committed, in a thread of its own, in the order of the commits."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rows: deque[Row] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="bus-relay", daemon=True)

    def start(self) -> None:
        """Begin sending."""
        self._thread.start()

    def stop(self) -> None:
        """Send what waits, as far as Redis answers; what is left, another process sends."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def offer(self, rows: Sequence[Row]) -> None:
        """Have committed events sent soon."""
        with self._wake:
            self._rows.extend(rows)
            self._wake.notify()

    def send(self, rows: Sequence[Row]) -> bool:
        """Send now and have it noted; False when Redis does not take them, and anybody may send them later."""
        sent = self._sent(rows)
        if sent:
            self._parts.held().submit(lambda c: outbox.mark_sent(c, sent), durable=False).result()
        return bool(sent)

    def _sent(self, rows: Sequence[Row]) -> list[Row]:
        """The rows with their entry ids; none when Redis does not take them."""
        try:
            entries = append(self._parts, rows)
        except (RedisError, OSError) as error:
            _log.warning("%d events of team %s wait for Redis: %s", len(rows), self._parts.team, error)
            self._parts.held().submit(lambda c: outbox.release(c, rows), durable=False)
            return []
        return [replace(row, entry=entry) for row, entry in zip(rows, entries, strict=True)]

    def _run(self) -> None:
        noted: list[Row] = []
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._rows or self._closing, MARK_S if noted else None)
                rows = [self._rows.popleft() for _ in range(min(BATCH, len(self._rows)))]
            if rows:
                noted += self._sent(rows)
            if noted and (not rows or len(noted) >= BATCH):
                self._mark(noted)
                noted = []
            if not rows and self._closing:
                return

    def _mark(self, sent: Sequence[Row]) -> None:
        self._parts.held().submit(lambda c: outbox.mark_sent(c, sent), durable=False)
