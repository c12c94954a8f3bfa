"""Durable first: lines that are on the disk when a call returns, or the run stops."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from runtime.errors import RepertoryError


class RecordLost(RepertoryError):
    """What the run must leave behind could not be written or read: which file, and why. The run stops."""

    def __init__(self, doing: str, cause: str) -> None:
        super().__init__(doing, cause)
        self.doing, self.cause = doing, cause

    def __str__(self) -> str:
        return f"{self.doing}: {self.cause}"


class LineFile:
    """Appends lines to a file. A torn last line, left by a killed process, is dropped on opening.

    Raises:
        RecordLost: the file cannot be opened or written (disk full, no permission).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _drop_torn_end(path)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise RecordLost(f"opening {path}", str(error)) from error

    def append(self, line: str) -> None:
        """Write one line and hand it to the operating system: it outlives this process."""
        rest = memoryview(f"{line}\n".encode())
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise RecordLost(f"writing {self.path}", str(error)) from error

    def close(self) -> None:
        """Close the file; everything is written already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def complete_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line that was written to its end; none where there is no file."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield number, line[:-1].decode()


def replace_file(path: Path, text: str) -> None:
    """Write a whole file so that a reader, or a crash, meets the old one or the new one, never half of it."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8", newline="\n")
        fresh.replace(path)
    except OSError as error:
        raise RecordLost(f"writing {path}", str(error)) from error


def _drop_torn_end(path: Path) -> None:
    if not path.is_file():
        return
    whole = path.read_bytes()
    end = whole.rfind(b"\n") + 1
    if end < len(whole):
        with path.open("r+b") as file:
            file.truncate(end)
