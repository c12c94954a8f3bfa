"""Providers that misbehave: an agent is answered, or told that nobody answers, within its budget."""

import time

import pytest

from runtime.llm.types import Answered, Unavailable
from tests.llm.providers import (
    CALM,
    HELLO,
    SHORT,
    Behaviour,
    asking,
    bad_json,
    closes,
    closes_at_once,
    closes_in_a_chunk,
    hangs,
    html,
    keeps_alive,
    never_ends,
    odd_json,
    provider,
    says,
    stalls,
    status,
    streamed,
    tells_error,
    trickles,
)

SLACK_S = 0.5
"""What a busy machine may add (s)."""
BAD = {
    "hangs": (hangs, "timeout"),
    "stalls": (stalls, "timeout"),
    "trickles": (trickles, "timeout"),
    "keeps alive": (keeps_alive, "timeout"),
    "never ends": (never_ends, "timeout"),
    "html": (html, "malformed"),
    "closes": (closes, "cut"),
    "closes in a chunk": (closes_in_a_chunk, "cut"),
    "closes at once": (closes_at_once, "cut"),
    "bad json": (bad_json, "malformed"),
    "odd json": (odd_json, "malformed"),
    "tells an error": (tells_error, "server"),
    "429": (status(429, retry_after="60"), "rate_limited"),
    "429 without a time": (status(429), "rate_limited"),
    "500": (status(500), "server"),
    "503 for an hour": (status(503, retry_after="3600"), "server"),
    "401": (status(401), "refused"),
    "404": (status(404), "refused"),
}


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """The libraries are imported before anything is timed."""
    with provider(says("hello")) as server, asking(server.url) as model:
        assert isinstance(model.ask(HELLO), Answered)


@pytest.mark.parametrize("name", BAD)
def test_within_the_budget(name: str) -> None:
    """Whatever the provider does, the caller is back in time and is told what went wrong."""
    behave, kind = BAD[name]
    with provider(behave) as server, asking(server.url, limits=SHORT) as model:
        began = time.monotonic()
        answer = model.ask(HELLO, 1.0)
        took = time.monotonic() - began
    assert took < 1.0 + SLACK_S
    assert isinstance(answer, Unavailable)
    assert answer.spent.degraded
    assert answer.failures[0].kind == kind, answer.why


@pytest.mark.parametrize("name", BAD)
def test_the_second_model_answers(name: str) -> None:
    """Behind a provider that misbehaves the second model answers in time, and the answer is marked."""
    with (
        provider(BAD[name][0]) as bad,
        provider(says("hello")) as good,
        asking(bad.url, good.url, limits=SHORT) as model,
    ):
        began = time.monotonic()
        answer = model.ask(HELLO, 2.0)
        took = time.monotonic() - began
    if name == "never ends":  # it had begun in time and used up all there was
        assert isinstance(answer, Unavailable)
    else:
        assert isinstance(answer, Answered), answer
        assert (answer.text, answer.spent.model, answer.spent.degraded) == ("hello", "m1", True)
    assert took < 2.0 + SLACK_S


def test_nobody_listens() -> None:
    """A port where nobody listens is a failure to connect, found at once."""
    with provider(hangs) as server:
        url = server.url
    with asking(url) as model:
        answer = model.ask(HELLO, 1.0)
    assert isinstance(answer, Unavailable)
    assert answer.failures[0].kind == "connect", answer.why


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_a_refusal_is_final(code: int) -> None:
    """A request that the provider refuses is not sent again."""
    with provider(status(code)) as server, asking(server.url) as model:
        model.ask(HELLO)
        assert len(server.asked) == 1


@pytest.mark.parametrize("behave", [status(500), status(503), html, bad_json, closes_at_once, hangs])
def test_three_attempts(behave: Behaviour) -> None:
    """What may go well the next time is tried again: the third attempt's answer is as good as a first one's."""
    limits = CALM.model_copy(update={"first_chunk_s": 1.0})
    with provider(behave, behave, says("hello")) as server, asking(server.url, limits=limits) as model:
        answer = model.ask(HELLO)
    assert isinstance(answer, Answered)
    assert (answer.text, answer.spent.attempts, answer.spent.degraded) == ("hello", 3, False)


@pytest.mark.parametrize("behave", [stalls, closes])
def test_no_second_try_after_the_first_token(behave: Behaviour) -> None:
    """An answer that broke off after it had begun is not asked for again."""
    with provider(behave, says("hello")) as server, asking(server.url, limits=SHORT) as model:
        answer = model.ask(HELLO)
        assert len(server.asked) == 1
    assert isinstance(answer, Unavailable)


def test_what_was_shown_stands() -> None:
    """Nobody else is asked once text was handed on: it could not be taken back."""
    with provider(closes) as bad, provider(says("hello")) as good, asking(bad.url, good.url) as model:
        shown, answer = streamed(model, HELLO)
        assert not good.asked
    assert shown == ["hel"]
    assert isinstance(answer, Unavailable)
    assert answer.partial == "hel"


def test_a_wait_that_is_asked_for() -> None:
    """``Retry-After`` is honoured where the budget allows it, and counts as the wait before the next attempt."""
    with provider(status(429, retry_after="0.3"), says("hello")) as server, asking(server.url) as model:
        began = time.monotonic()
        answer = model.ask(HELLO)
        took = time.monotonic() - began
    assert isinstance(answer, Answered)
    assert took >= 0.3


def test_a_local_policy_is_the_last_resort() -> None:
    """Where no model answers the local policy does, marked and free of charge; when it raises, the answer says so."""
    with provider(hangs) as server:
        with asking(server.url, local=lambda request: f"local: {request.text}") as model:
            answer = model.ask(HELLO, 0.5)
        with asking(server.url, local=lambda _: str(1 / 0)) as model:
            broken = model.ask(HELLO, 0.5)
    assert isinstance(answer, Answered)
    assert (answer.text, answer.spent.degraded, answer.spent.cost_usd) == ("local: say hello", True, 0.0)
    assert isinstance(broken, Unavailable)
    assert "ZeroDivisionError" in broken.why


def test_a_local_policy_that_hangs() -> None:
    """Even the local policy has to keep to the budget."""
    import threading

    never = threading.Event()
    with provider(status(500)) as server, asking(server.url, local=lambda _: str(never.wait(30))) as model:
        began = time.monotonic()
        answer = model.ask(HELLO, 0.5)
        took = time.monotonic() - began
        never.set()
    assert isinstance(answer, Unavailable)
    assert took < 0.5 + SLACK_S
