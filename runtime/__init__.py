"""How an agent lives, and how agents reach each other. Its two great names are loaded when they are used."""

import importlib
from typing import Any

_LAZY = {"AgentActor": "runtime.actor", "EventBus": "runtime.bus"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a refused experiment file waits for neither Redis nor Ray."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
