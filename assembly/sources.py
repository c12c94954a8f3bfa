"""What a team's tools are, as a hash of their source."""

import inspect
from hashlib import sha256

from runtime.types import Team


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
