"""Reading along: a thread of its own that hands what was committed to whoever shows it, and disturbs nobody."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Self

from runtime.seams import now
from runtime.store import Store, feedback
from runtime.store.history import Noted
from telemetry.follow import Follower
from telemetry.metrics.live import LiveFeed
from telemetry.metrics.meters import Meters

LOG = logging.getLogger(__name__)
LOOK_S = 0.5
"""Pause between two looks at the history (s): seldom beside what a team commits, often beside what anybody scrapes."""
LAST_S = 10.0
"""How long the end waits for what was being read (s)."""


class Thread:
    """Does a piece of work again and again; a failure is said once and tried again.

    Args:
        name: what it does, for logs.
        work: does a piece; whether there was something to do.
    """

    def __init__(self, name: str, work: Callable[[], bool]) -> None:
        self._name, self._work, self._failing = name, work, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Do what is left, once, and end."""
        self._stop.set()
        self._thread.join(LAST_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            while self._done() and not self._stop.is_set():
                pass
        while self._done():
            pass

    def _done(self) -> bool:
        try:
            found = self._work()
        except Exception as error:  # noqa: BLE001 - who shows things must not end over what others do
            if not self._failing:
                LOG.warning("%s: not possible just now, it is tried again: %r", self._name, error)
            self._failing = True
            return False
        self._failing = False
        return found


class Counting:
    """Counts what a store's teams do from now on.

    Args:
        store: whose history is followed.
        meters: what is fed.
        feed: counts records.
    """

    def __init__(self, store: Store, meters: Meters, feed: LiveFeed) -> None:
        self._store, self._meters, self._feed = store, meters, feed
        self._follower = Follower(store, after=None)
        self._heard = store.read(feedback.newest)

    def __call__(self) -> bool:
        """Count what is new; whether there was something."""
        news = self._follower.news()
        self._feed.take(news)
        self._tell_age(news)
        said = self._store.read(lambda c: feedback.after(c, self._heard))
        for place, team, each in said:
            self._heard = place
            self._feed.feedback(team, each)
        return bool(news or said)

    def _tell_age(self, news: Sequence[Noted]) -> None:
        age = max(0.0, now() - news[-1].record.at) if news else 0.0
        self._meters.record("recorder.behind", age)
