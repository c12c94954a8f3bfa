"""An experiment file as plain values with their places: the file itself, then ``--set``."""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import cast

from assembly.problems import Path, Problem, Refused, dotted
from assembly.yaml_text import UnreadableError, Values, read
from runtime.records import Json

MAX_BYTES = 1_000_000
"""An experiment file has a few KB; a larger one is not one, and would take its time to be refused."""
FILE_KEYS: tuple[Path, ...] = (
    ("scenarios", "file"),
    ("scenarios", "train", "file"),
    ("scenarios", "eval", "file"),
    ("evaluation", "regressions"),
)
"""Keys whose value is a path from the experiment file."""


@dataclass
class Document:
    """A file's values and where each comes from."""

    file: FilePath
    data: dict[str, Json]
    places: dict[Path, str | int] = field(default_factory=dict[Path, str | int])
    """A line, or the ``--set`` that wrote it."""
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def name(self) -> str:
        """The file's name, as it stands above a report."""
        return self.file.name

    def problem(self, path: Path, message: str) -> Problem:
        """A problem at a key: the place is that of the key, or of the nearest section around it."""
        place = next((self.places[path[:i]] for i in range(len(path), -1, -1) if path[:i] in self.places), 1)
        if isinstance(place, str):
            return Problem(dotted(path), message, place)
        return Problem(dotted(path), message, f"line {place}", place)


def read_document(
    file: FilePath,
    overrides: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    begins: str = "an experiment begins with name: …",
) -> Document:
    """The file with the overrides applied. Raises Refused if it cannot be read at all."""
    try:
        values = read(_text(file), environment)
    except UnreadableError as error:
        place = f"line {error.line}" if error.line else ""
        raise Refused(file.name, [Problem("", error.message, place, error.line)]) from None
    data: Json = values.data
    if not isinstance(data, dict):
        raise Refused(file.name, [Problem("", f"holds no keys; {begins}", "line 1", 1)])
    document = Document(file, cast("dict[str, Json]", data), {**values.lines}, [*values.problems])
    for override in overrides:
        _override(document, override, environment)
    _resolve_paths(document)
    return document


def _text(file: FilePath) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode) and not file.is_dir():
            raise UnreadableError(0, f"cannot be read: it is no file but a pipe or a device ({file})")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(0, f"cannot be read: {reason} ({file})") from None
    if len(raw) > MAX_BYTES:
        raise UnreadableError(0, f"is larger than {MAX_BYTES // 1000} kB; that is no experiment file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(raw[: error.start].count(b"\n") + 1, "is not UTF-8 text") from None


def _override(document: Document, override: str, environment: Mapping[str, str]) -> None:
    key, equals, text = override.partition("=")
    key = key.strip()
    place = f"--set {key}"
    if not equals or not all(part.strip() for part in key.split(".")):
        document.problems.append(Problem("", "wants dotted.key=value", f"--set {override}"))
        return
    try:
        values = read(text, environment) if text.strip() else Values()
        path = _put(document.data, key.split("."), values.data)
    except UnreadableError as error:
        document.problems.append(Problem(key, error.message, place))
        return
    inner = [Problem(key, p.message, place) for p in values.problems]
    document.problems[:] = [p for p in document.problems if p.key != key and not p.key.startswith(f"{key}.")] + inner
    document.places = {p: at for p, at in document.places.items() if p[: len(path)] != path}
    document.places[path] = place


def _put(data: Json, keys: list[str], value: Json) -> Path:
    """Write the value at the dotted key, making sections on the way. Raises UnreadableError if there can be none."""
    path: Path = ()
    for depth, key in enumerate(keys):
        at = _place(data, key, path)
        path = (*path, at)
        if depth == len(keys) - 1:
            data[at] = value
        elif data[at] is None:
            data[at] = {}
        data = data[at]
    return path


def _place(data: Json, key: str, path: Path) -> str | int:
    """Where the key stands in a section or list; a place for it is made if there is none yet."""
    if isinstance(data, dict):
        cast("dict[str, Json]", data).setdefault(key, None)
        return key
    if not isinstance(data, list):
        raise UnreadableError(0, f"{dotted(path)} is a single value; it has no {key!r} in it")
    items = cast("list[Json]", data)
    if not re.fullmatch(r"[0-9]{1,5}", key) or int(key) > len(items):
        raise UnreadableError(0, f"{dotted(path)} is a list of {len(items)}; {key!r} is no place in it")
    if int(key) == len(items):
        items.append(None)
    return int(key)


def _resolve_paths(document: Document) -> None:
    folder = document.file.resolve().parent
    for *way, last in FILE_KEYS:
        section = _section(document.data, way)
        if isinstance(named := section.get(str(last)), str) and named:
            section[str(last)] = os.path.normpath(folder / named)
    scenarios = _section(document.data, ["scenarios"])
    if isinstance(store := scenarios.get("store"), str) and store and ":" not in store:
        scenarios["store"] = os.path.normpath(folder / store)
    args = _section(document.data, ["team", "args"])
    for key, value in args.items():
        if isinstance(value, str) and value.startswith(("./", "../")):
            args[key] = os.path.normpath(folder / value)
            if not FilePath(args[key]).exists():
                document.problems.append(document.problem(("team", "args", key), f"no such file: {value}"))


def _section(data: dict[str, Json], way: Sequence[str | int]) -> dict[str, Json]:
    """The section at a path; an empty one if there is none."""
    found: Json = data
    for key in way:
        found = cast("dict[str | int, Json]", found).get(key) if isinstance(found, dict) else None
    return cast("dict[str, Json]", found) if isinstance(found, dict) else {}
