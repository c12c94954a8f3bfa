"""Answers too old for the role that reads them: shown as stale, and open to be asked for again."""

from collections.abc import Sequence
from dataclasses import replace

from runtime.types import Role, Seen


def stale_before(role: Role, now: float) -> float:
    """What was read before this moment (Unix time, s) is stale to the role; nothing is, where it demands no age."""
    return float("-inf") if role.max_age_s is None else now - role.max_age_s


def marked(seen: Sequence[Seen], oldest: float, now: float) -> tuple[Seen, ...]:
    """The lines, with the age of each answer that was read before ``oldest``."""
    return tuple(_old(s, now - s.at) if s.at is not None and s.at < oldest else s for s in seen)


def _old(seen: Seen, age_s: float) -> Seen:
    return replace(seen, text=f"{seen.text} (stale: read {age_s:.0f} s ago)")
