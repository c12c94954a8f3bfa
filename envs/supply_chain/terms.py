"""What a case is worth in US dollars: the remedy's payoff less what was spent. The terms' sum is the return."""

from envs.supply_chain.world_file import WorldFile
from runtime.records import Sent, ToolAnswered
from runtime.terms import term
from runtime.types import RewardTerm, View


def terms_of(file: WorldFile) -> dict[str, RewardTerm]:
    """The world file's reward terms, each in USD."""

    @term(kind="outcome", reads=["truth", "outcome"], at_end=True)
    def payoff(view: View) -> float:
        """What the remedy pays under the true cause; a case cut short without one pays as the worst remedy does."""
        cause, remedy = view.truth["cause"], view.outcome["remedy"]
        return file.worst_payoff(cause) if remedy is None else file.payoff[remedy][cause]

    @term(kind="cost")
    def tool_cost(view: View) -> float:
        """Minus what the step's tool calls were billed."""
        return -sum(r.cost_usd for r in view.step if isinstance(r, ToolAnswered))

    @term(kind="cost")
    def handoff_cost(view: View) -> float:
        """Minus the price of each hand-over."""
        return -file.handoff_cost * sum(isinstance(r, Sent) for r in view.step)

    return {t.name: t for t in (payoff, tool_cost, handoff_cost)}
