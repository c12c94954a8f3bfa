"""What can go wrong with an agent as such. Each survives pickling: Ray carries them between processes."""

from runtime.errors import RepertoryError


class DeadlinePassed(RepertoryError):
    """A call did not come back in time, or was too late to be begun."""

    def __init__(self, agent: str, event_id: str, what: str) -> None:
        super().__init__(agent, event_id, what)
        self.agent, self.event_id, self.what = agent, event_id, what

    def __str__(self) -> str:
        return f"{self.agent}: event {self.event_id} {self.what}"


class NotStarted(RepertoryError):
    """An agent could not be made in its process: which, and what it raised there."""

    def __init__(self, agent: str, why: str) -> None:
        super().__init__(agent, why)
        self.agent, self.why = agent, why

    def __str__(self) -> str:
        return f"{self.agent} could not be started: {self.why}"


class AgentLost(RepertoryError):
    """The agent's process ended in the middle of a call, and without a store nobody can say whether it was done."""

    def __init__(self, agent: str, event_id: str) -> None:
        super().__init__(agent, event_id)
        self.agent, self.event_id = agent, event_id

    def __str__(self) -> str:
        return f"{self.agent} ended while it had event {self.event_id}; it has no store to tell whether that was done"


class SnapshotRefused(RepertoryError):
    """A stored state cannot be used: it is damaged, or of another program's form."""

    def __init__(self, agent: str, session: str, why: str) -> None:
        super().__init__(agent, session, why)
        self.agent, self.session, self.why = agent, session, why

    def __str__(self) -> str:
        return f"{self.agent}: the state of session {self.session} {self.why}"
