"""Bringing traces out of a store: all of them, or each as its session ends, and going on after a crash."""

from collections.abc import Iterator, Sequence

from opentelemetry.sdk.trace import ReadableSpan

from runtime.records import EpisodeEnded
from runtime.store import Store, dead, feedback, history, marks
from telemetry.follow import Follower
from telemetry.traces.sinks import Sink
from telemetry.traces.spans import Beside, spans_of

AT_ONCE = 20
"""Sessions whose spans are exported together: a few hundred spans."""


def session_spans(store: Store, team: str, session: str) -> list[ReadableSpan]:
    """A session's trace, as the store has it now."""
    noted = store.read(lambda c: history.noted_of_session(c, team, session))
    said = store.read(lambda c: feedback.of_session(c, team, session))
    letters = store.read(lambda c: dead.letters(c, team))
    mine = [each for each in letters if each.fields.get("correlation_id") == session]
    return spans_of(team, noted, Beside(said, mine))


def export_all(store: Store, sink: Sink, since: float = 0.0) -> Iterator[int]:
    """Export every session that was opened since then (Unix time, s), ended or not; yields spans of each batch.

    Raises:
        ConnectionError: the sink does not take them.
    """
    opened = store.read(lambda c: history.opened_since(c, since))
    for place in range(0, len(opened), AT_ONCE):
        spans = [s for team, name in opened[place : place + AT_ONCE] for s in session_spans(store, team, name)]
        if not sink.take(spans):
            raise ConnectionError(f"{sink.name} does not take traces")
        yield len(spans)


class Exporting:
    """Exports each session as it ends, and again when feedback on it comes.

    How far it got is noted in the store: after a crash, or a collector that was away, it goes on from there. A trace
    that is exported twice has the same ids.

    Args:
        store: whose history is followed.
        sink: where traces go.
    """

    def __init__(self, store: Store, sink: Sink) -> None:
        self._store, self._sink = store, sink
        self._mark, self._heard = f"traces:{sink.name}", f"traces:{sink.name}:feedback"
        noted = store.read(lambda c: (marks.get(c, self._mark), marks.get(c, self._heard)))
        self._follower = Follower(store, int(noted[0] or 0))
        self._said = int(noted[1] or 0)
        self._waiting: list[tuple[str, str]] = []

    def __call__(self) -> bool:
        """Export what ended; whether there was something that could be."""
        if not self._waiting:
            self._look()
        if not self._waiting:
            return False
        batch = self._waiting[:AT_ONCE]
        if not self._sink.take([s for team, name in batch for s in session_spans(self._store, team, name)]):
            return False
        self._waiting = self._waiting[AT_ONCE:]
        if not self._waiting:
            self._note()
        return True

    def _look(self) -> None:
        news = self._follower.news()
        said = self._store.read(lambda c: feedback.after(c, self._said))
        ended = [(n.team, n.record.correlation_id) for n in news if isinstance(n.record, EpisodeEnded)]
        judged = [(team, each.correlation_id) for _, team, each in said]
        self._said = max([self._said, *(place for place, _, _ in said)])
        self._waiting = _once([*ended, *judged])
        if news and not self._waiting:
            self._note()

    def _note(self) -> None:
        place, said = str(self._follower.place), str(self._said)
        self._store.write(lambda c: (marks.put(c, self._mark, place), marks.put(c, self._heard, said)))


def _once(sessions: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(sessions))
