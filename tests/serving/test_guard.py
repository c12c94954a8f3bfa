"""What holds for every request: bounds on number, size and time, answered in one shape; who may call."""

import asyncio
import itertools
from typing import Any

import httpx2
import pytest

from runtime.access import token_at
from runtime.errors import ServiceUnavailable
from serving.access import Access, make_token
from serving.client import Refused, Unreachable
from serving.errors import NoSuchSession, Unauthorized
from serving.http.guard import Guard
from serving.settings import Limits
from serving.trying import Tries

ACCESS = Access({"ada": "ada-token-0123456789", "root": "root-token-0123456789"}, ["root"], "secret")


def guarded(app: Any, **limits: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=Guard(app, Limits(**limits)))
    return httpx2.AsyncClient(transport=transport, base_url="http://guard")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-agent-version", b"v7")]})
    await send({"type": "http.response.body", "body": body})


def test_too_much_at_once_is_refused_and_told_when() -> None:
    """With as much being done as may be: 503 and Retry-After; health is answered all the same."""

    async def crowd() -> None:
        hold, entered = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                entered.set()
                await hold.wait()
            await echo(scope, receive, send)

        async with guarded(slow, in_flight=1) as client:
            first = asyncio.create_task(client.post("/slow", content=b"one"))
            await entered.wait()
            second = await client.post("/slow", content=b"two")
            assert (second.status_code, second.json()["error"]["code"]) == (503, "overloaded")
            assert second.headers["retry-after"] == "1"
            assert (await client.get("/healthz")).status_code == 200
            hold.set()
            assert (await first).text == "one"
            assert (await client.post("/any", content=b"three")).text == "three", "room again"

    asyncio.run(crowd())


def test_bodies_are_bounded_however_they_come() -> None:
    """Also where nothing says beforehand how much there will be."""

    async def send_much() -> None:
        async def parts() -> Any:
            for _ in range(20):
                yield b"x" * 100

        async with guarded(echo, body_bytes=1000) as client:
            for content in (b"x" * 1001, parts()):
                answer = await client.post("/", content=content)
                assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
            assert len((await client.post("/", content=b"x" * 1000)).content) == 1000

    asyncio.run(send_much())


def test_every_answer_is_marked() -> None:
    """By the correlation id that was sent, if it is harmless, and the version that answered, if one did."""

    async def ask() -> None:
        async def broken(scope: Any, receive: Any, send: Any) -> None:
            raise RuntimeError("a secret of ours")

        async with guarded(echo) as client:
            good = await client.get("/", headers={"x-correlation-id": "abc-1"})
            assert (good.headers["x-correlation-id"], good.headers["x-agent-version"]) == ("abc-1", "v7")
            bad = await client.get("/", headers={"x-correlation-id": "a b"})
            assert len(bad.headers["x-correlation-id"]) == 32
        async with guarded(broken) as client:
            fault = await client.get("/")
            assert (fault.status_code, fault.headers["x-agent-version"]) == (500, "none")
            assert "secret" not in fault.text

    asyncio.run(ask())


def test_who_calls() -> None:
    """A token is known or not; only an admin's steers."""
    assert ACCESS.caller("Bearer ada-token-0123456789").name == "ada"
    assert ACCESS.caller("bearer root-token-0123456789", admin=True).admin
    for header in (None, "", "Bearer", "Bearer ada-token", "Basic ada-token-0123456789"):
        with pytest.raises(Unauthorized):
            ACCESS.caller(header)
    with pytest.raises(Unauthorized, match="ada may not steer"):
        ACCESS.caller("Bearer ada-token-0123456789", admin=True)
    assert "token" not in repr(ACCESS.caller("Bearer ada-token-0123456789"))


def test_session_ids_are_bound_to_token_and_team() -> None:
    """Nobody else's, of no other team, and none that was changed; chance makes them, or a key does."""
    ada, root = ACCESS.caller("Bearer ada-token-0123456789"), ACCESS.caller("Bearer root-token-0123456789")
    name = ACCESS.session(ada, "shop")
    ACCESS.check(ada, "shop", name)
    changed = ("0" if name[0] != "0" else "1") + name[1:]
    for caller, team, session in (
        (root, "shop", name),
        (ada, "other", name),
        (ada, "shop", changed),
        (ada, "shop", "é"),
    ):
        with pytest.raises(NoSuchSession):
            ACCESS.check(caller, team, session)
    assert ACCESS.session(ada, "shop") != name
    assert ACCESS.session(ada, "shop", "k") == ACCESS.session(ada, "shop", "k") != ACCESS.session(root, "shop", "k")


def test_tokens_are_where_the_file_says(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made once, readable by its owner only; one that is missing or short is named, and not shown."""
    file = tmp_path / "token"
    make_token(file)
    made = token_at(f"file:{file}")
    make_token(file)
    assert token_at(f"file:{file}") == made
    assert file.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    for reference in ("env:SHORT_TOKEN", "env:NO_SUCH_TOKEN", f"file:{tmp_path}/none"):
        with pytest.raises(ServiceUnavailable) as missing:
            token_at(reference)
        assert "abc" not in str(missing.value).replace(str(tmp_path), "")


def answer(status: int, headers: dict[str, str] | None = None, body: Any = None) -> httpx2.Response:
    return httpx2.Response(status, headers=headers or {}, json=body)


def test_a_client_tries_again_when_that_may_help() -> None:
    """After a killed router, a full queue, no connection; not after an answer that would be the same."""
    ours = {"x-correlation-id": "c"}
    tries = Tries(60.0, chance=lambda: 0.0)
    assert tries.pause_after(answer(200, ours)) is None
    for again in (answer(500), answer(404), answer(503, ours), answer(504, ours)):
        assert tries.pause_after(again) is not None
    assert tries.pause_after(error=httpx2.ConnectError("refused")) is not None
    assert tries.pause_after(answer(503, {**ours, "retry-after": "2"})) == 2.0
    said = {"error": {"code": "over", "message": "the session is over"}}
    for final in (answer(409, ours, said), answer(500, ours, said), answer(401, ours, said)):
        with pytest.raises(Refused, match="over: the session is over"):
            tries.pause_after(final)


def test_a_client_gives_up_in_time() -> None:
    """When no other try fits into its patience, and it says what the last one was."""
    tries = Tries(0.3, chance=lambda: 1.0)
    refused = (tries.pause_after(error=httpx2.ConnectError("refused")) for _ in itertools.count())
    with pytest.raises(Unreachable, match="ConnectError"):
        list(refused)
    assert tries.made > 1
