"""A store that is full, away or stuck is no matter of the program's; feedback and ends come by HTTP."""

import asyncio
import fcntl
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runtime.proxy.asked import asked_of
from runtime.proxy.desk import Desk
from runtime.proxy.exchange import Exchange, Spent
from runtime.proxy.ledger import Ledger
from runtime.proxy.said import Said
from runtime.proxy.settings import Bounds, Roles, Settings
from runtime.recorded import recorded_sessions
from runtime.records import Decided, EpisodeEnded, Feedback, Sent
from runtime.store import StoreBusy, open_store
from tests.conftest import WaitUntil
from tests.llm.providers import provider
from tests.proxy.house import KEY, TEAM, recording, records_of, words

ROOM_KB = 400
"""What a file may grow to where the disk is full (kB)."""


def ask(url: str, session: str, text: str = "hello") -> httpx2.Response:
    headers = {"authorization": f"Bearer {KEY}", "x-session-id": session}
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return httpx2.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=20)


@contextmanager
def command(folder: Path, upstream: str, *more: str, full: bool = False) -> Generator[tuple[str, Any]]:
    """The proxy as a user starts it; its address, and the process."""

    told = folder / "told"
    asked = [sys.executable, "-m", "runtime.proxy", "--upstream", upstream, "--port", "0", *more]
    small = ["bash", "-c", f'ulimit -f {ROOM_KB}; exec "$@"', "_"] if full else []
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with told.open("w") as out:
        process = subprocess.Popen([*small, *asked], cwd=folder, stdout=out, stderr=out, env=environment)
    try:
        yield _address(told, process), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _address(told: Path, process: "subprocess.Popen[bytes]") -> str:
    from time import monotonic, sleep

    deadline = monotonic() + 60
    while monotonic() < deadline and process.poll() is None:
        found = re.search(r"recording at (\S+)/v1", told.read_text())
        if found and _healthy(found[1]):
            return found[1]
        sleep(0.05)
    raise AssertionError(told.read_text())


def _healthy(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/proxy/health").status_code == 200
    except httpx2.TransportError:
        return False


def test_the_command_records_and_says_where(tmp_path: Path) -> None:
    """Told to stop, it ends open conversations and stops well."""
    with provider(words("hi")) as upstream, command(tmp_path, upstream.url) as (url, process):
        assert ask(url, "s").json()["choices"][0]["message"]["content"] == "hi"
    assert process.returncode == 0
    told = (tmp_path / "told").read_text()
    assert "records of proxy in sqlite:///" in told
    store = open_store(f"sqlite:///{tmp_path / 'proxy' / 'store.db'}")
    (found,) = recorded_sessions(store, "proxy")
    store.close()
    assert found.session == "s"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--upstream", "api.openai.com"], 2, "is no address"),
        (["--upstream", "http://x/v1", "--host", "0.0.0.0"], 2, "can be reached from other machines"),  # noqa: S104
        (["--upstream", "http://x/v1", "--ratio", "5%"], 2, "has no effect without --serve"),
        (["--upstream", "http://x/v1", "--idle", "nan"], 2, "--idle: is to be more than 0"),
        (["--upstream", "http://x/v1", "--serve", "http://y/v1"], 2, "--role: is missing"),
        (["--upstream", "http://x/v1", "--roles", "roles.yaml"], 2, r"line 2 +roles.triage.promt: unknown key"),
        (["--upstream", "http://x/v1", "--token", "secret-itself"], 3, "write env:NAME or file:PATH"),
        (["--upstream", "http://x/v1", "--token", "env:NO_SUCH_TOKEN"], 3, "holds no token"),
        (["--upstream", "http://x/v1", "--store", "mongodb://x"], 3, "is no store"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At once, with the reason and what to do."""
    from runtime.proxy.__main__ import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "roles.yaml").write_text("roles:\n  triage: {promt: You are}\n")
    assert main(arguments) == code
    assert re.search(told, capsys.readouterr().err)


def test_a_full_disk_is_said_once_and_stops_nobody(tmp_path: Path) -> None:
    """Every call goes through; what could not be recorded whole is not learnt from."""
    with provider(words("hi")) as upstream, command(tmp_path, upstream.url, full=True) as (url, _):
        for turn in range(60):
            assert ask(url, f"s-{turn}", text="x" * 20_000).status_code == 200
    told = (tmp_path / "told").read_text()
    assert told.count("nothing is recorded, calls go through all the same") == 1
    store = open_store(f"sqlite:///{tmp_path / 'proxy' / 'store.db'}")
    found = list(recorded_sessions(store, "proxy"))
    store.close()
    assert len(found) < 60
    assert all(any(isinstance(r, Decided) for r in s.told()) for s in found)


def test_a_store_that_is_stuck_makes_nobody_wait(
    tmp_path: Path, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    """While another process holds it, calls go through; some records wait, the others are lost and counted."""
    bounds = Bounds(unwritten=3)
    with (
        caplog.at_level(logging.WARNING),
        provider(words("hi")) as upstream,
        recording(tmp_path / "s.db", upstream.url, bounds=bounds) as recorded,
    ):
        with (tmp_path / "s.db.lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for turn in range(8):
                assert ask(recorded.url, f"s-{turn}").status_code == 200
            assert recorded.ledger.written == 0
            wait_until(lambda: recorded.ledger.lost == 5, "the loss of the others")
        wait_until(lambda: recorded.ledger.written == 3, "what had waited")
        assert ask(recorded.url, "after").status_code == 200
    assert [bool(recorded.records(f"s-{turn}")) for turn in range(8)] == [True] * 3 + [False] * 5
    assert recorded.records("after")
    assert caplog.text.count("nothing is recorded") == 1
    assert "recording again; 5 groups of records were lost" in caplog.text


def test_only_what_has_no_end_is_said_to_have_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that stops while the store is stuck says how many conversations it could not end, once and if any."""
    monkeypatch.setattr("runtime.proxy.ledger.WAIT_S", 0.05)
    ledger = Ledger(open_store(f"sqlite:///{tmp_path / 's.db'}", "normal"), TEAM, 100)
    with (tmp_path / "s.db.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ledger.wait()
        ledger.end(())
        assert not caplog.text
        ledger.end([EpisodeEnded(correlation_id="s", at=0.0, outcome={}, success=False, truncated=True)])
    ledger.close()
    assert caplog.text.count("1 conversations have no end on record") == 1


def test_a_conversation_is_judged_and_ended(tmp_path: Path) -> None:
    """The reward and the outcome are those that the program says; then its name begins another conversation."""
    place = tmp_path / "s.db"
    with provider(words("hi")) as upstream, recording(place, upstream.url) as recorded:
        ask(recorded.url, "mine")
        judged = httpx2.post(f"{recorded.url}/proxy/feedback", json={"session": "mine", "value": 0.5, "source": "me"})
        over = {"session": "mine", "success": True, "outcome": {"sent": 1}}
        assert (judged.status_code, httpx2.post(f"{recorded.url}/proxy/end", json=over).status_code) == (200, 200)
        assert httpx2.post(f"{recorded.url}/proxy/end", json=over).status_code == 404
        assert httpx2.post(f"{recorded.url}/proxy/feedback", json={"session": "x", "value": 1}).status_code == 404
        assert httpx2.post(f"{recorded.url}/proxy/feedback", json={"session": "mine"}).status_code == 422
        assert ask(recorded.url, "mine").headers["x-session-id"] == "mine.2"
        assert ask(recorded.url, "mine", "more").headers["x-session-id"] == "mine.2"
    store = open_store(f"sqlite:///{place}")
    first, second = recorded_sessions(store, TEAM)
    store.close()
    assert (first.session, first.reward, first.success, first.truncated) == ("mine", 0.5, True, False)
    assert (second.session, second.reward, second.truncated) == ("mine.2", None, True)
    assert [r.turn for r in second.told() if isinstance(r, Decided)] == [0, 1]
    assert [r.value for r in first.told() if isinstance(r, Feedback)] == [0.5]


HELLO = {"role": "user", "content": "hello"}
HI = Said(text="hi", calls=(), finish="stop")


@contextmanager
def desk(place: Path) -> Generator[Desk]:
    """The conversations alone, without a server: what is on its way stays there until a test says so."""
    settings = Settings(upstream="http://x/v1", store=f"sqlite:///{place}", roles=Roles(team=TEAM))
    made = Desk(settings, Ledger(open_store(settings.store, "normal"), TEAM, 100))
    yield made
    made.close()


async def asks(desk: Desk, *more: dict[str, str], name: str = "") -> Exchange:
    asked = asked_of(json.dumps({"model": "m", "messages": [HELLO, *more]}).encode())
    assert asked is not None
    return await desk.begin(asked, {"x-session-id": name})


def answers(desk: Desk, exchange: Exchange) -> None:
    desk.end(exchange, HI, HI, Spent(model="x/m", ms=1.0))


def test_one_decision_is_judged(tmp_path: Path) -> None:
    """Feedback that names a decision is about that one, and is not the conversation's reward; also after its end."""
    place = tmp_path / "s.db"
    with provider(words("hi")) as upstream, recording(place, upstream.url) as recorded:
        ask(recorded.url, "mine")
        assert httpx2.post(f"{recorded.url}/proxy/end", json={"session": "mine"}).status_code == 200
        said = {"session": "mine", "value": -1, "decision": "mine/agent/0"}
        judged = httpx2.post(f"{recorded.url}/proxy/feedback", json=said)
        assert (judged.status_code, judged.json()) == (200, {"noted": True})
    store = open_store(f"sqlite:///{place}")
    (found,) = recorded_sessions(store, TEAM)
    store.close()
    assert (found.reward, found.success, found.truncated) == (None, False, False)
    assert [(r.decision_id, r.value) for r in found.told() if isinstance(r, Feedback)] == [("mine/agent/0", -1.0)]


def test_an_end_waits_for_the_answer_that_is_on_its_way(tmp_path: Path) -> None:
    """A program may know the last answer, and say that it was the last, before it is on record."""

    async def ends_early(desk: Desk) -> bool:
        exchange = await asks(desk, name="s")
        ending = asyncio.create_task(desk.finish("s", {"paid": 1}, success=True))
        await asyncio.sleep(0)
        answers(desk, exchange)
        return await ending

    with desk(tmp_path / "s.db") as made:
        assert asyncio.run(ends_early(made))
    *before, ended = records_of(tmp_path / "s.db", "s")
    assert [r.kind for r in before] == ["episode_opened", "model_called", "observed", "decided", "sent"]
    assert isinstance(ended, EpisodeEnded)
    assert (ended.success, ended.outcome) == (True, {"paid": 1})


def test_an_answer_that_comes_after_the_end_is_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stands behind an end, and whoever goes on from there begins another conversation."""
    monkeypatch.setattr("runtime.proxy.desk.SETTLED_S", 0.0)

    async def answered_late(desk: Desk) -> tuple[str, str]:
        first, late = await asks(desk, name="s"), await asks(desk, name="s")
        answers(desk, first)
        assert await desk.finish("s", {}, success=True)
        answers(desk, late)
        other = await asks(desk, {"role": "assistant", "content": HI.text}, HELLO)
        answers(desk, other)
        return first.found.id, other.found.id

    with desk(tmp_path / "s.db") as made:
        first, other = asyncio.run(answered_late(made))
    assert other != first
    kinds = [r.kind for r in records_of(tmp_path / "s.db", "s")]
    assert kinds == ["episode_opened", "model_called", "observed", "decided", "sent", "episode_ended"]
    assert any(isinstance(r, Decided) for r in records_of(tmp_path / "s.db", other))


def test_what_the_store_does_not_tell_of_is_not_learnt_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that cannot be looked up may be that of a conversation that has begun: it goes on, and has no end."""

    def is_away(*_: object) -> None:
        raise StoreBusy("the store", 1.0)

    with provider(words("hi")) as upstream:
        with recording(tmp_path / "s.db", upstream.url) as recorded:
            monkeypatch.setattr(recorded.ledger, "read", is_away)
            assert ask(recorded.url, "s").status_code == 200
        assert [type(r) for r in recorded.records("s")][-1] is Sent
    store = open_store(f"sqlite:///{tmp_path / 's.db'}")
    assert list(recorded_sessions(store, TEAM)) == []
    store.close()


def test_a_silent_conversation_is_over(tmp_path: Path, wait_until: WaitUntil) -> None:
    """After so long without a question, cut and not failed."""
    with provider(words("hi")) as upstream, recording(tmp_path / "s.db", upstream.url, bounds=Bounds(idle_s=0.5)) as it:
        ask(it.url, "s")
        wait_until(lambda: any(isinstance(r, EpisodeEnded) for r in it.records("s")), "its end")
        (ended,) = [r for r in records_of(tmp_path / "s.db", "s") if isinstance(r, EpisodeEnded)]
    assert (ended.outcome, ended.truncated) == ({"ended": "idle"}, True)
