"""What a team's code is: its tools as a hash of their source, and the commit that it lay in."""

import inspect
import subprocess
from hashlib import sha256
from pathlib import Path

from runtime.types import Team

GIT_S = 10.0
"""How long git may take (s): the working tree of a large repository on a slow disk is looked through in a few."""


def source_hash(team: Team) -> str:
    """A hash over the source of the team's tools: the same name and schema must also mean the same deed."""
    told = sha256()
    for name in sorted(team.tools):
        run = inspect.unwrap(team.tools[name].run)
        try:
            source = inspect.getsource(run)
        except (OSError, TypeError):
            source = f"{getattr(run, '__module__', '')}.{getattr(run, '__qualname__', type(run).__qualname__)}"
        told.update(f"{name}\x1f{source}\x1e".encode())
    return told.hexdigest()


def commit_of(folder: Path) -> str | None:
    """The commit that a folder's repository stands at, with ``-dirty`` where a tracked file is not as in it.

    None: the folder lies in no repository, or in one without commits, or there is no git.
    """
    asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=GIT_S, check=True)  # noqa: S603 - git alone
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None
