"""What the inspection team is paid for; what the questions cost is the library's term ``tool_cost``."""

from runtime.terms import term
from runtime.types import RewardTerm, View


@term(kind="outcome", reads=["outcome"], at_end=True)
def payoff(view: View) -> float:
    """What the work order is worth against the fault, USD."""
    return float(view.outcome["payoff_usd"])


@term(kind="cost", reads=["outcome"], at_end=True)
def downtime(view: View) -> float:
    """Minus what the machine's standing still costs, USD."""
    return -float(view.outcome["downtime_usd"])


TERMS: dict[str, RewardTerm] = {t.name: t for t in (payoff, downtime)}
