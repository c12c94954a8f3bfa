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


class ServiceUnavailable(RepertoryError):
    """A declared service is missing, unreachable, too old, or its clock is off: which, what was seen, what to do."""

    def __init__(self, declared: str, seen: str, remedy: str) -> None:
        super().__init__(declared, seen, remedy)
        self.declared, self.seen, self.remedy = declared, seen, remedy

    def __str__(self) -> str:
        return f"{self.declared}: {self.seen}; {self.remedy}"


class Fenced(RepertoryError):
    """The writer is no longer the owner: another one took over while it was away, and its work is void."""

    def __init__(self, owner: str, held: int, current: int) -> None:
        super().__init__(owner, held, current)
        self.owner, self.held, self.current = owner, held, current

    def __str__(self) -> str:
        return f"{self.owner} is owned by epoch {self.current}; epoch {self.held} may not write any more"
