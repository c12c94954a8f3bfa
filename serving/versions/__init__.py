"""Versions of teams: registered, deployed, shared between, promoted, rolled back, retired; every change on record."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serving.versions.ledger import Change, Known
    from serving.versions.steer import Versions

__all__ = ["Change", "Known", "Versions"]
_LAZY = {"Change": "ledger", "Known": "ledger", "Versions": "steer"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a command that only helps or refuses does not wait for the store's libraries."""
    if name in _LAZY:
        return getattr(importlib.import_module(f"serving.versions.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
