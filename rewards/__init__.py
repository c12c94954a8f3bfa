"""What a team is paid, and how that pay is put on one scale."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewards.standardize import RewardStandardizer

__all__ = ["RewardStandardizer"]


def __getattr__(name: str) -> object:
    """Import the standardizer, and scikit-learn with it, only where it is used."""
    if name == "RewardStandardizer":
        from rewards.standardize import RewardStandardizer

        return RewardStandardizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
