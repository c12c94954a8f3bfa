"""An answer says what it cost, and retries are few."""

from random import Random

import pytest

from runtime.llm import Answered, Limits, ModelSettings, Seams, Unavailable, build
from runtime.llm.limits import RetryBudget, backoff
from runtime.llm.scripted import Scripted
from runtime.records import ModelCalled
from tests.llm.providers import HELLO, asking, provider, says, status, streamed


def test_reported_tokens_and_cost() -> None:
    """Tokens are those that the provider reports, and the price table gives the cost."""
    with provider(says("hel", "lo", usage=(1000, 200))) as server, asking(server.url) as model:
        answer = model.ask(HELLO)
    assert isinstance(answer, Answered)
    assert (answer.text, answer.reason) == ("hello", "stop")
    spent = answer.spent
    assert (spent.tokens_in, spent.tokens_out, spent.counted) == (1000, 200, "reported")
    assert spent.cost_usd == pytest.approx(1000 / 1e6 + 200 * 10 / 1e6)
    assert spent.ms > 0


def test_counted_tokens() -> None:
    """A provider that reports none: the tokenizer counts, and without one the estimate says that it is one."""
    with provider(says("hello", "you", usage=None)) as server:
        with asking(server.url, count=lambda text: len(text.split())) as model:
            counted = model.ask(HELLO).spent
        with asking(server.url) as model:
            estimated = model.ask(HELLO).spent
    assert (counted.tokens_in, counted.tokens_out, counted.counted) == (2, 1, "tokenizer")
    assert (estimated.tokens_in, estimated.tokens_out, estimated.counted) == (3, 2, "estimated")


def test_a_record_of_it() -> None:
    """Every answer fills a ``ModelCalled`` record, also the word that nobody is there."""
    with provider(says("hello"), status(401)) as server, asking(server.url) as model:
        good, none = model.ask(HELLO), model.ask(HELLO)
    who = {"correlation_id": "c", "at": 0.0, "agent": "a", "turn": 0}
    said = ModelCalled(**who, **good.spent.fields())
    assert (said.tokens_in, said.tokens_out, said.degraded) == (7, 2, False)
    assert said.model.endswith("/m0")
    assert isinstance(none, Unavailable)
    assert ModelCalled(**who, **none.spent.fields()).degraded


def test_streaming() -> None:
    """Text is handed on as it comes; the answer is the generator's value."""
    with provider(says("a", "b", "c")) as server, asking(server.url) as model:
        pieces, answer = streamed(model, HELLO)
    assert pieces == ["a", "b", "c"]
    assert isinstance(answer, Answered)
    assert answer.text == "abc"


def test_what_is_sent() -> None:
    """The request's messages, limits and schema reach the provider, and its own retries stay off."""
    from runtime.llm import Message, Request

    asked = Request(
        messages=(Message("system", "s"), Message("user", "u")), max_tokens=5, seed=3, schema={"type": "object"}
    )
    with provider(status(500)) as server, asking(server.url, limits=Limits(attempts=1)) as model:
        model.ask(asked)
        assert len(server.asked) == 1
        body = server.asked[0]
    assert body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert (body["max_tokens"], body["seed"], body["temperature"]) == (5, 3, 0.0)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_retries_are_a_tenth() -> None:
    """Of many questions that all fail, at most a tenth is tried again; the first one is tried three times."""
    calls, slept = 0, [0.0]

    def fails(_: object) -> object:
        nonlocal calls
        calls += 1
        from runtime.llm.types import Failure

        return Failure(kind="rate_limited", message="no", retry_after_s=0.0)

    from runtime.llm.calling import Caller
    from runtime.llm.model import Model, Priced
    from runtime.llm.shared import InMemory

    clock = [0.0]

    def sleep(seconds: float) -> None:
        slept[0] += seconds
        clock[0] += seconds

    seams = Seams(now=lambda: clock[0], monotonic=lambda: clock[0], sleep=sleep, rng=Random(1))
    limits = Limits()
    model = Model([Priced(Caller(Scripted(fails), limits, InMemory(), seams))], limits, seams)
    assert model.ask(HELLO).spent.attempts == 3
    for asked in range(2, 301):
        clock[0] += 60.0
        model.ask(HELLO)
        assert asked < 20 or calls - asked <= asked / 10
    assert calls > 300
    assert slept[0] > 0


def test_the_retry_budget() -> None:
    """Calls earn a tenth of a retry each, and no more than ten are saved."""
    budget = RetryBudget()
    for _ in range(1000):
        budget.called()
    assert sum(budget.take() for _ in range(50)) == 10


def test_full_jitter() -> None:
    """Waits are spread from nothing to 0.5, 1, 2, 4 and at most 8 s."""
    rng = Random(0)
    for attempt, top in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 8.0), (9, 8.0)):
        waits = [backoff(Limits(), attempt, rng) for _ in range(2000)]
        assert 0 <= min(waits) < 0.05 * top
        assert 0.95 * top < max(waits) <= top


def test_settings() -> None:
    """A model is made of settings: scripted replies come in turn, and cost nothing."""
    settings = ModelSettings.model_validate({"model": {"kind": "scripted", "replies": ["one", "two"]}})
    model = build(settings)
    said = [model.ask(HELLO) for _ in range(3)]
    model.close()
    assert [a.text for a in said if isinstance(a, Answered)] == ["one", "two", "one"]
    assert [a.spent.cost_usd for a in said] == [0.0, 0.0, 0.0]


def test_a_key_is_named_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the key the start is refused, with the variable's name."""
    from runtime.llm.chat import KeyMissing

    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(KeyMissing, match="SOME_KEY"):
        build(ModelSettings.model_validate({"model": {"kind": "openai", "model": "m", "key_variable": "SOME_KEY"}}))
