"""Failures that name the culprit. Each survives pickling: Ray carries them between processes."""


class RepertoryError(Exception):
    """Whatever this project raises on purpose."""


class UserCodeError(RepertoryError):
    """The team's own code raised: whose code, while doing what, and what came out."""

    def __init__(self, doing: str, cause: str) -> None:
        super().__init__(doing, cause)
        self.doing, self.cause = doing, cause

    def __str__(self) -> str:
        return f"{self.doing}: {self.cause}"


class RewardFault(RepertoryError):
    """A reward term had nothing to judge, or failed: the reward is missing, which is not zero."""


class TeamError(RepertoryError):
    """A team, role, tool or scenario is not well formed: what, and what to do about it."""
