"""Reward terms that fit any team. A team adds its own in ``Team.terms``."""

from runtime.records import Sent, ToolAnswered
from runtime.terms import term
from runtime.types import RewardTerm, View


@term(kind="outcome", reads=["outcome"], at_end=True)
def solved(view: View) -> float:
    """1 when the episode ended well, else 0."""
    return float(view.success)


@term(kind="cost")
def tool_cost(view: View) -> float:
    """Minus the US dollars that the step's tool calls were billed."""
    return -sum(r.cost_usd for r in view.step if isinstance(r, ToolAnswered))


@term(kind="cost", scope="agent")
def invalid_calls(view: View) -> float:
    """Minus 1 for each call of the agent that was answered with an error."""
    return -float(sum(isinstance(r, ToolAnswered) and not r.ok for r in view.step))


@term(kind="cost")
def hand_overs(view: View) -> float:
    """Minus 1 for each time the case changed hands."""
    return -float(sum(isinstance(r, Sent) for r in view.step))


TERMS: dict[str, RewardTerm] = {t.name: t for t in (solved, tool_cost, invalid_calls, hand_overs)}
"""The terms that an experiment file can name for any team."""
