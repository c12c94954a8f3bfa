"""Recorded episodes to imitate: from a file of records or of sessions, or from the store that they were recorded in."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from runtime.errors import ServiceUnavailable
from runtime.recorded import RecordedSession, read_sessions, recorded_sessions
from runtime.records import RECORD, Record
from runtime.store import open_store

SQLITE = "sqlite:///"


def traced(source: str, folder: Path, team: str, most: int) -> Iterator[Sequence[Record]]:
    """Episodes, each its records in order.

    Args:
        source: a store's URL, a Parquet file of ``python -m runtime.recorded``, or a JSONL file, a record a line.
        folder: where a relative path starts.
        team: whose sessions are meant, of a store or Parquet file.
        most: how many at most, the first ones.

    Raises:
        ServiceUnavailable: there is no such store.
        NotRecorded: the Parquet file holds no recorded sessions.
    """
    if "://" in source:
        yield from _stored(source, team, most)
    elif source.endswith(".parquet"):
        mine = (s for s in read_sessions(folder / source) if s.team == team)
        yield from map(RecordedSession.told, islice(mine, most))
    else:
        yield from _lines(folder / source, most)


def _stored(url: str, team: str, most: int) -> Iterator[Sequence[Record]]:
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).is_file():
        raise ServiceUnavailable(url, "there is no such file", "name the store that sessions were recorded in")
    store = open_store(url)
    try:
        yield from map(RecordedSession.told, islice(recorded_sessions(store, team), most))
    finally:
        store.close()


def _lines(path: Path, most: int) -> Iterator[Sequence[Record]]:
    """An episode is what has one correlation id."""
    episodes: dict[str, list[Record]] = {}
    with path.open() as lines:
        for line in lines:
            record = RECORD.validate_json(line)
            if record.correlation_id not in episodes and len(episodes) >= most:
                continue
            episodes.setdefault(record.correlation_id, []).append(record)
    yield from episodes.values()
