"""What the customer service team is paid for."""

from runtime.records import ToolAnswered
from runtime.terms import term
from runtime.types import RewardTerm, View


@term(kind="outcome", reads=["outcome"], at_end=True)
def answered(view: View) -> float:
    """How far the customer's question was settled, 0 to 1."""
    return float(view.outcome["settled"])


@term(kind="cost", reads=["outcome"], at_end=True)
def wrong_promise(view: View) -> float:
    """Minus 1 when a customer was told that money is coming, and that was not the answer to the question."""
    return -float(view.outcome["wrong_promise"])


@term(kind="cost")
def tokens(view: View) -> float:
    """Minus the thousands of tokens that the step fetched or wrote."""
    return -sum(_tokens(r) for r in view.step if isinstance(r, ToolAnswered) and r.ok) / 1000


def _tokens(answer: ToolAnswered) -> int:
    if answer.tool == "search":
        return sum(p["tokens"] for p in answer.value)
    return answer.value["tokens"] if answer.tool == "reply" else 0


TERMS: dict[str, RewardTerm] = {t.name: t for t in (answered, tokens, wrong_promise)}
