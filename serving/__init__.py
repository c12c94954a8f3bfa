"""How a team evolves while it works: its versions side by side, sessions that never switch, swaps nobody notices."""

import importlib
from typing import Any

_LAZY = {"AsyncClient": "serving.client", "Client": "serving.client"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a command that only helps or refuses waits for nothing."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
