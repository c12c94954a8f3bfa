"""A model that is not asked twice: replies that were kept are given again, at no cost."""

from collections.abc import Mapping
from time import monotonic

from runtime.llm.model import Model
from runtime.llm.replies import Replies, Reply
from runtime.llm.types import Answer, Answered, Request, Spent
from runtime.records import Json


class Remembering:
    """A frozen model with the replies that it has given.

    Args:
        model: who is asked otherwise.
        name: all that tells the model from others: where it is, what it is called, which weights it has.
        replies: where replies are.
    """

    def __init__(self, model: Model, name: str, replies: Replies) -> None:
        self._model, self._name, self._replies = model, name, replies

    def ask(self, request: Request, budget_s: float | None = None) -> Answer:
        """The answer, from before or now. One that chance decides without a seed is never kept."""
        if request.temperature > 0 and request.seed is None:
            return self._model.ask(request, budget_s)
        question, began = self._question(request), monotonic()
        known = self._replies.find(question)
        if known is not None:
            return _again(known, 1000 * (monotonic() - began))
        answer = self._model.ask(request, budget_s)
        if isinstance(answer, Answered) and not answer.spent.degraded:
            self._replies.keep(question, _reply(answer))
        return answer

    def stats(self) -> list[dict[str, int | str]]:
        """How the model is."""
        return self._model.stats()

    def close(self) -> None:
        """Release the model."""
        self._model.close()

    def _question(self, request: Request) -> Mapping[str, Json]:
        return {
            "model": self._name,
            "messages": [[m.role, m.text] for m in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed if request.temperature > 0 else None,
            "schema": request.schema,
        }


def _reply(answer: Answered) -> Reply:
    spent = answer.spent
    return Reply(
        text=answer.text,
        reason=answer.reason,
        provider=spent.provider,
        model=spent.model,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost_usd=spent.cost_usd,
    )


def _again(known: Reply, ms: float) -> Answered:
    """The same answer. What it took then is told, so that a role's own budget holds alike; nobody is billed for it."""
    spent = Spent(
        provider=known.provider,
        model=known.model,
        tokens_in=known.tokens_in,
        tokens_out=known.tokens_out,
        ms=ms,
        cost_usd=known.cost_usd,
        cached=True,
    )
    return Answered(text=known.text, spent=spent, reason=known.reason)
