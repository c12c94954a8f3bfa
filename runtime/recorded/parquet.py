"""Recorded sessions as a Parquet file: one row a session, in a schema with a version."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runtime.errors import RepertoryError
from runtime.recorded.sessions import RecordedSession

VERSION = 1
"""Of the schema; one more whenever a column is renamed, or means something else."""
KIND = "repertory recorded sessions"
KIND_KEY, VERSION_KEY = b"repertory.kind", b"repertory.version"
"""What the file's metadata say of it."""
ROWS = 500
"""Sessions of a row group: so many are in memory at once."""
AS_JSON = ("visible", "truth")
"""Columns that hold JSON, since every team has its own keys."""


class NotRecorded(RepertoryError):
    """A file that holds no recorded sessions, or in a schema that is not known here: which, and what to do."""


def _arrow() -> tuple[Any, Any]:
    """PyArrow, which has no types, and its part for Parquet: loaded when a file is read or written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa, pq


def schema() -> Any:
    """The columns; times are Unix times in seconds, ``reward`` is null where nobody said anything."""
    pa, _ = _arrow()
    columns: list[tuple[str, Any]] = [
        ("team", pa.string()),
        ("session", pa.string()),
        ("version", pa.string()),
        ("scenario", pa.string()),
        ("scenario_seed", pa.int64()),
        ("visible", pa.string()),
        ("truth", pa.string()),
        ("opened", pa.float64()),
        ("ended", pa.float64()),
        ("success", pa.bool_()),
        ("truncated", pa.bool_()),
        ("degraded", pa.bool_()),
        ("reward", pa.float64()),
        ("records", pa.list_(pa.string())),
    ]
    about = {KIND_KEY: KIND.encode(), VERSION_KEY: str(VERSION).encode()}
    return pa.schema(columns, metadata=about)


def write_sessions(path: Path, sessions: Iterable[RecordedSession]) -> int:
    """Write sessions, whole or not at all: the file appears when it is complete. How many there were."""
    pa, pq = _arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    part, left, count = path.with_name(f"{path.name}.part"), iter(sessions), 0
    try:
        with pq.ParquetWriter(part, schema(), compression="zstd") as writer:
            while rows := [_row(s) for s in islice(left, ROWS)]:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema()))
                count += len(rows)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return count


def read_sessions(path: Path) -> Iterator[RecordedSession]:
    """The sessions in a file, a row group at a time.

    Raises:
        NotRecorded: it holds none, or in a later schema than this program knows.
    """
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path) as file:
            _check(path, file.schema_arrow.metadata or {})
            for batch in file.iter_batches(ROWS):
                yield from map(_session, batch.to_pylist())
    except (pa.ArrowException, OSError, ValidationError, KeyError, ValueError) as error:
        raise NotRecorded(f"{path} cannot be read as recorded sessions: {error}") from error


def _check(path: Path, about: dict[bytes, bytes]) -> None:
    if about.get(KIND_KEY) != KIND.encode():
        raise NotRecorded(f"{path} holds no recorded sessions; python -m runtime.recorded writes such files")
    if (found := int(about.get(VERSION_KEY, b"0"))) > VERSION:
        raise NotRecorded(f"{path} has schema {found}, this program knows up to {VERSION}: use the newer program")


def _row(session: RecordedSession) -> dict[str, Any]:
    row = session.model_dump()
    return row | {name: json.dumps(row[name], ensure_ascii=False) for name in AS_JSON}


def _session(row: dict[str, Any]) -> RecordedSession:
    return RecordedSession(**row | {name: json.loads(row[name]) for name in AS_JSON})
