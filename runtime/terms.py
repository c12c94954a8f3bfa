"""Reward terms are written beside the team they judge: this builds one from a function."""

from collections.abc import Callable, Iterable
from typing import Literal, Self

from runtime.llm.types import Spent
from runtime.types import RewardTerm, TermKind, View


class Judgement(float):
    """A reward that a model was asked for, and what asking took."""

    spent: Spent

    def __new__(cls, value: float, spent: Spent) -> Self:
        """The value, which counts as any other."""
        made = super().__new__(cls, value)
        made.spent = spent
        return made


def term(
    *,
    kind: TermKind,
    scope: Literal["agent", "team"] = "team",
    reads: Iterable[Literal["truth", "outcome"]] = (),
    at_end: bool = False,
    name: str = "",
    timeout_s: float | None = None,
) -> Callable[[Callable[[View], float]], RewardTerm]:
    """Make a reward term of a function from a view to a number.

    Args:
        kind: ``outcome`` (what the team is for), ``cost`` (what it spends) or ``shaping`` (a hint on the way).
        scope: ``agent`` pays the agent whose turn it was, ``team`` everybody in full.
        reads: what the term needs beyond the past: ``truth``, ``outcome``. Anything undeclared raises when it is read.
        at_end: judge once, after the last step. A term that reads the outcome can only be judged then.
        name: the name in experiment files and metrics; the function's own by default.
        timeout_s: seconds after which a judgement counts as missing, for a term that may hang.
    """
    needs = frozenset(reads)
    if "outcome" in needs and not at_end:
        raise ValueError("a term that reads the outcome must be judged at the end: pass at_end=True")

    def build(function: Callable[[View], float]) -> RewardTerm:
        return RewardTerm(
            name=name or function.__name__,
            function=function,
            kind=kind,
            scope=scope,
            reads=needs,
            at_end=at_end,
            timeout_s=timeout_s,
        )

    return build
