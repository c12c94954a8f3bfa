"""How a version is steered, as the judgement of rollouts sees it: shares of new sessions, promotion, rollback."""

from collections.abc import Mapping
from typing import Literal, Protocol

Pinned = Literal["finish", "migrate", "end"]
"""What becomes of the sessions that are pinned to a version which is rolled back: they finish on it, go on with the
version that takes its place (only where both play the same team), or end at once."""


class Steering(Protocol):
    """Whoever moves traffic between versions. A version is named by its alias: ``v1``, ``v2``, …"""

    def current(self, team: str) -> str:
        """The version that new sessions get by default. Raises ``serving.errors.UnknownVersion`` if there is none."""
        ...

    def ratios(self, team: str) -> Mapping[str, float]:
        """The share of new sessions in [0, 1] that each canary gets; versions without a share are left out."""
        ...

    def canary(self, team: str, version: str, ratio: float, *, by: str, why: str) -> None:
        """Give a version that is ready this share of new sessions; open sessions stay where they are."""
        ...

    def promote(self, team: str, version: str, *, by: str, why: str) -> None:
        """Make a version that is ready the one that new sessions get by default."""
        ...

    def rollback(self, team: str, version: str, *, by: str, why: str, pinned: Pinned = "finish") -> None:
        """Give this version no new sessions any more; if it was the current one, the one before it takes its place."""
        ...
