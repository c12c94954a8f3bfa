"""Who has the floor: the turn protocols as small state machines over agent names."""

from dataclasses import dataclass

from runtime.types import HAND_BACK, HAND_OVER, AgentId, Pipeline, Turns


@dataclass(slots=True)
class Floor:
    """Whose turn it is, and what a decision does to that."""

    turns: Turns
    at: int = 0
    """Position in the order."""
    round: int = 0
    over: bool = False

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """The agents that decide now, none when the protocol is over."""
        if self.over:
            return ()
        if self.turns.kind == "simultaneous":
            return self.turns.order[self.at :]
        return (self.turns.order[self.at],)

    def receiver(self, agent: AgentId, call: str) -> AgentId | None:
        """Who gets the case by this call, or None where nobody stands there."""
        order = self.turns.order
        place = order.index(agent) + (1 if call == HAND_OVER else -1)
        return order[place] if 0 <= place < len(order) else None

    def passes(self, agent: AgentId) -> tuple[str, ...]:
        """The hand-over calls that this agent has in a pipeline."""
        if not isinstance(self.turns, Pipeline):
            return ()
        calls = (HAND_OVER, HAND_BACK) if self.turns.hand_back else (HAND_OVER,)
        return tuple(c for c in calls if self.receiver(agent, c) is not None)

    def handed(self, to: AgentId) -> None:
        """The case goes to that agent."""
        self.at = self.turns.order.index(to)

    def acted(self) -> bool:
        """Somebody (in a simultaneous round: everybody) has made a call. True when that ends a round."""
        if isinstance(self.turns, Pipeline):
            return False
        self.at = (self.at + 1) % len(self.turns.order)
        if self.at:
            return False
        self.round += 1
        self.over = self.round >= self.turns.rounds
        return True
