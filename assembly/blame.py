"""Whose code raised: the team's own file and line, where it was the team's."""

import errno
import re
import sqlite3
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("assembly", "envs", "policies", "rewards", "runtime", "serving", "telemetry", "trainers")
_OURS = tuple(str(_ROOT / package) for package in _PACKAGES)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')

_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR}
)
"""What the operating system answers where a disk is full, broken, or not to be written to."""
_DATABASE = ("full", "readonly", "disk I/O", "unable to open")
"""What SQLite says of the same."""


def disk(error: BaseException) -> str | None:
    """What the disk refused, where that was it; None where it was something else."""
    cause = _first(error)
    if isinstance(cause, OSError) and cause.errno in _DISK:
        named = f"{cause.filename}: " if cause.filename else f"{error}: " if cause is not error else ""
        return f"cannot be written: {named}{cause.strerror or cause}"
    if isinstance(cause, sqlite3.Error) and any(word in str(cause) for word in _DATABASE):
        return f"a database cannot be written: {cause}"
    return None


def whose(error: BaseException) -> str | None:
    """The team's line, and what it raised; None where no line of the team's was running."""
    cause = _first(error)
    frames = [*_frames(cause), *(f for f in _remote(error))]
    theirs = [f for f in frames if not f[0].startswith(("<", *_OURS, *_LIBRARIES))]
    if not theirs:
        return None
    file, line, function = theirs[-1]
    return f"{type(cause).__name__} at {file}:{line}, in {function}: {cause}"


def told(error: BaseException) -> str:
    """The traceback."""
    return "".join(traceback.format_exception(error)).rstrip()


def _first(error: BaseException) -> BaseException:
    """What was raised first. Ray hands over what another process raised as ``cause``."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException) and cause is not error:
        return _first(cause)
    return _first(error.__cause__) if error.__cause__ else error


def _frames(error: BaseException) -> Iterator[tuple[str, str, str]]:
    for frame in traceback.extract_tb(error.__traceback__):
        yield frame.filename, str(frame.lineno), frame.name


def _remote(error: BaseException) -> Iterator[tuple[str, str, str]]:
    """Frames of another process, which come as text."""
    for match in _FRAME.finditer(str(getattr(error, "traceback_str", ""))):
        yield match["file"], match["line"], match["function"]
