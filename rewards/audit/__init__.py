"""Is the reward honest? Checks that look for leaks, and for pay that a good team would not earn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewards.audit.auditing import audit

__all__ = ["audit"]


def __getattr__(name: str) -> object:
    """Import the audit, and the checks with it, only where it is used."""
    if name == "audit":
        from rewards.audit.auditing import audit

        return audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
