"""How a command ends: its exit code, and what is in the way in a line or a report, never a traceback."""

import sys
from collections.abc import Callable

from runtime.errors import RepertoryError, ServiceUnavailable

DONE, FAULT, REFUSED, UNAVAILABLE = 0, 1, 2, 3
"""Exit codes: done; something failed; what was asked for cannot be as it stands; a declared service is not there."""


def ended(work: Callable[[], int], *refused: type[Exception]) -> int:
    """Do a command's work: its own exit code, or that of what it raised, which is printed.

    Args:
        work: the command.
        refused: errors that are about what was asked for: exit code 2.
    """
    try:
        return work()
    except refused as error:
        print(_words(error), file=sys.stderr)
        return REFUSED
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except RepertoryError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return FAULT


def _words(error: Exception) -> str:
    """An error of the file system by the file's name, without its number."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
