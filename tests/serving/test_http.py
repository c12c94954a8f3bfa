"""A real server: sessions over HTTP that stay with their version, turns that happen once, versions that are steered."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from assembly.build import Build
from assembly.versions import load_version
from runtime.embedded import client_of as redis_of
from runtime.records import Decided
from runtime.store import feedback, history
from serving import AsyncClient, Client
from serving.client import Refused
from serving.errors import NotNow
from serving.server.conductor import statuses
from serving.server.seat import app_name
from serving.server.start import Server
from tests.conftest import WaitUntil
from tests.live.versions import EXPERIMENT, fresh_version
from tests.serving.conftest import TEAM, UP_S, client_of, serving_two
from tests.serving.swapping import Storm, faults, store_of, stormy, swapped

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("ray")]
AT = f"/v1/teams/{TEAM}"


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, exports: tuple[Path, Path], wait_until: WaitUntil
) -> Iterator[Server]:
    limits = {"body_bytes": 20_000}
    with serving_two(tmp_path_factory.mktemp("served"), exports, wait_until, limits=limits) as running:
        yield running


@pytest.fixture
def ada(server: Server) -> Iterator[Client]:
    with client_of(server) as client:
        yield client


@pytest.fixture
def raw(server: Server) -> Iterator[httpx2.Client]:
    """Plain HTTP, without trying again."""
    token = {"authorization": "Bearer admin-token-0123456789"}
    with httpx2.Client(base_url=server.url, headers=token, timeout=30) as client:
        yield client


@pytest.fixture
def shares(server: Server) -> Iterator[Server]:
    """No canary before or after."""
    yield server
    server.versions.canary(TEAM, "v2", 0.0, by="test", why="the test is over")


def test_serving_decides_as_evaluation_does(server: Server, ada: Client, exports: tuple[Path, Path]) -> None:
    """Twelve held-out cases, decision by decision, under either version."""
    from assembly.loading import load
    from trainers.play import play
    from trainers.rllib.algorithm import make_adapter

    build = Build(load(EXPERIMENT, []))
    for alias, export in zip(("v1", "v2"), exports, strict=True):
        seats = load_version(export).seats
        evaluated = play(lambda: make_adapter(build, "eval"), seats, range(12), seed=build.experiment.seed, greedy=True)
        for each in evaluated:
            run = ada.run(TEAM, draw={"split": "eval", "seed": 2, "index": each.episode}, version=alias)
            served = [(d.agent, d.tool, d.args) for t in run.turns for d in t.decisions]
            assert served == [(r.agent, r.call.tool, dict(r.call.args)) for r in each.records if isinstance(r, Decided)]
            assert run.version == alias


def test_a_turn_happens_once_for_its_key(server: Server, ada: Client) -> None:
    """Sixteen at once with one key: one turn, one answer, one set of records."""
    session = ada.open(TEAM, draw={"index": 5})
    with ThreadPoolExecutor(16) as pool:
        turns = [t.result() for t in [pool.submit(session.turn, "first") for _ in range(16)]]
    assert all(t == turns[0] for t in turns)
    assert turns[0].turn == 0
    assert session.turn("second").turn == 1
    assert session.turn("first") == turns[0]
    records = server.versions.store.read(lambda c: history.of_session(c, TEAM, session.id))
    decided = Counter(r.decision_id for r in records if isinstance(r, Decided))
    assert decided
    assert set(decided.values()) == {1}
    last = list(session)[-1]
    assert last.ended
    with pytest.raises(Refused, match="409 over"):
        session.turn()
    assert session.turn("first") == turns[0], "also when the session is over"


def test_a_session_belongs_to_its_token(server: Server, ada: Client) -> None:
    """Another caller's session does not exist; an id cannot be made up."""
    session = ada.open(TEAM)
    with client_of(server, "bob") as bob:
        for path in (f"{AT}/sessions/{session.id}/turns", f"{AT}/sessions/{'0' * 64}/turns"):
            with pytest.raises(Refused, match="404 no_such_session"):
                bob.request("POST", path, {})
        with pytest.raises(Refused, match="404 no_such_session"):
            bob.request("DELETE", f"{AT}/sessions/{session.id}", {})
        with pytest.raises(Refused, match="403 not_admin"):
            bob.request("POST", f"{AT}/versions/v2/promote", {})
    assert session.turn().turn == 0
    assert session.end().ended
    assert session.end().ended
    with pytest.raises(Refused, match="409 over"):
        session.turn()


def test_rewards_come_in(server: Server, ada: Client) -> None:
    """For a session or a decision of the caller's own, kept once for its key, under the version that played it."""
    run = ada.run(TEAM, draw={"index": 9}, version="v1")
    assert ada.feedback(run, 0.5, key="one") == {"repeated": False, "judged": True, "standardized": None}
    assert ada.feedback(run, 0.5, key="one")["repeated"]
    decision = run.turns[0].decisions[0].id
    assert not ada.feedback(run, 1.0, decision=decision)["judged"]
    kept = server.versions.store.read(lambda c: feedback.of_session(c, TEAM, run.session))
    assert [(f.value, f.decision_id) for f in kept] == [(0.5, None), (1.0, decision)]
    with client_of(server, "bob") as bob, pytest.raises(Refused, match="404 no_such_session"):
        bob.feedback(run, -5.0)


def test_nothing_without_a_token(server: Server) -> None:
    """No header, another scheme, a wrong token: 401, on whatever changes or shows state; health is free."""
    for header in ({}, {"authorization": "Basic abc"}, {"authorization": "Bearer wrong-token-0123456789"}):
        with httpx2.Client(base_url=server.url, headers=header) as client:
            for method, path in (
                ("POST", f"{AT}/sessions"),
                ("POST", f"{AT}/runs"),
                ("GET", f"{AT}/versions"),
                ("POST", f"{AT}/versions/v1/retire"),
            ):
                answer = client.request(method, path)
                assert answer.status_code == 401
                assert answer.headers["x-correlation-id"]
                assert answer.headers["x-agent-version"] == "none"
            assert client.get("/healthz").json() == {"ok": True}
            assert client.get("/readyz").status_code == 200


def test_the_same_key_opens_the_same_session(ada: Client, server: Server) -> None:
    """And another case under it, or another version, is a contradiction."""
    first = ada.open(TEAM, draw={"index": 1}, version="v2", key="case-1")
    assert first.version == "v2"
    assert ada.open(TEAM, draw={"index": 1}, key="case-1").id == first.id
    with pytest.raises(Refused, match="409 key_reused"):
        ada.open(TEAM, draw={"index": 2}, key="case-1")
    with pytest.raises(Refused, match="409 other_version"):
        ada.open(TEAM, draw={"index": 1}, version="v1", key="case-1")
    with client_of(server, "bob") as bob:
        assert bob.open(TEAM, draw={"index": 1}, key="case-1").id != first.id


def test_a_version_can_be_asked_for_and_never_changes(ada: Client, raw: httpx2.Client) -> None:
    """By alias or hash, for a new session; later a contradiction is 409."""
    session = ada.open(TEAM, version="v2")
    with pytest.raises(Refused, match="409 other_version"):
        ada.request("POST", f"{AT}/sessions/{session.id}/turns", {"x-agent-version": "v1"})
    known = {v["version"]: v["hash"] for v in raw.get(f"{AT}/versions").json()}
    assert ada.open(TEAM, version=known["v2"]).version == "v2"
    with pytest.raises(Refused, match="404 unknown_version"):
        ada.open(TEAM, version="v9")
    with pytest.raises(Refused, match="404 unknown_version"):
        ada.open("shop")


def test_the_switch_in_redis(shares: Server, ada: Client, wait_until: WaitUntil) -> None:
    """``SET supply_chain_v2_ratio 1``: all new sessions within a second, no old one; nonsense changes nothing."""
    old = ada.open(TEAM)
    redis = redis_of(shares.settings.redis_at)
    redis.set("supply_chain_v2_ratio", "1")
    wait_until(lambda: ada.open(TEAM).version == "v2", "the ratio to be seen", 2.0)
    wait_until(lambda: {ada.open(TEAM).version for _ in range(8)} == {"v2"}, "both routers to see it", 2.0)
    assert old.turn().version == "v1"
    for nonsense in ("1.5", "lots", "-1"):
        redis.set("supply_chain_v2_ratio", nonsense)
        wait_until(lambda n=nonsense: refused(shares)[-1:] == [n], "the refusal to be on record")
        assert ada.open(TEAM).version == "v2"
    redis.flushall()
    wait_until(lambda: redis.get("supply_chain_v2_ratio") == b"1", "the ratio to be put back")
    assert ada.open(TEAM).version == "v2"
    redis.close()
    changes = [c for c in shares.versions.history(TEAM) if c.action == "canary"]
    assert (changes[-1].by, changes[-1].what["ratio"]) == ("redis", 1.0)
    assert len(refused(shares)) == 3, "each is refused once, whichever router saw it"


def stands(server: Server) -> set[str]:
    return {v.alias for v in server.versions.known(TEAM) if v.state == "ready"}


def refused(server: Server) -> list[str]:
    return [c.what["raw"] for c in server.versions.history(TEAM) if c.action == "canary_refused"]


def test_disk_beats_redis(server: Server, ada: Client) -> None:
    """A pin that Redis has wrong, or lost, leads nowhere else: the session goes on with its version."""
    session = ada.open(TEAM, version="v1")
    redis = redis_of(server.settings.redis_at)
    key = f"serving:pin:{TEAM}:{session.id}"
    assert redis.get(key) == b"v1"
    redis.set(key, "v2")
    # Whichever router is asked, and whether it remembers the pin or not:
    assert {session.turn().version for _ in range(1)} == {"v1"}
    redis.flushall()
    assert [t.version for t in session] == ["v1", "v1"]
    redis.close()


def test_bad_requests_are_told_so(raw: httpx2.Client) -> None:
    """Too large, not JSON, unknown fields, a case that cannot be played: each its status, in one shape."""
    large = raw.post(f"{AT}/sessions", content=b"x" * 20_001)
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    for body in ({"draw": {"indx": 1}}, {"scenario": {"visible": []}}):
        answer = raw.post(f"{AT}/sessions", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
    answer = raw.post(f"{AT}/runs", json={"scenario": {"visible": {"made": "up"}}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "impossible")
    assert "truth.cause" in answer.json()["error"]["message"]
    assert raw.get("/nowhere").json()["error"]["code"] == "no_such_route"
    schema = raw.get("/openapi.json").json()
    assert f"{AT.replace(TEAM, '{team}')}/sessions" in schema["paths"]


def test_steering_over_http(raw: httpx2.Client, server: Server, ada: Client, wait_until: WaitUntil) -> None:
    """Promote, roll back, drain, retire: what may not be is refused with the reason, and all of it is on record."""
    held = ada.open(TEAM, version="v2")
    assert raw.post(f"{AT}/versions/v2/promote", json={"why": "better"}).json()["current"]
    wait_until(lambda: {ada.open(TEAM).version for _ in range(8)} == {"v2"}, "both routers to see it", 2.0)
    for path, code in (("v2/drain", "current"), ("v2/retire", "current"), ("v1/retire", "open_sessions")):
        if code == "open_sessions":
            ada.open(TEAM, version="v1")
        answer = raw.post(f"{AT}/versions/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, code)
    back = raw.post(f"{AT}/versions/v2/rollback", json={"why": "worse", "pinned": "finish"}).json()
    assert (back["state"], back["current"]) == ("draining", False)
    assert server.versions.current(TEAM) == "v1"
    assert held.turn().version == "v2", "a pinned session finishes on the version that was rolled back"
    with pytest.raises(Refused, match="409 not_ready"):
        ada.open(TEAM, version="v2")
    told = [(c["version"], c["action"], c["by"], c["why"]) for c in raw.get(f"{AT}/history").json()]
    assert ("v2", "promote", "admin", "better") in told
    assert ("v2", "rollback", "admin", "worse") in told
    assert raw.post(f"{AT}/versions/v2/deploy").status_code == 200
    assert raw.get(f"{AT}/versions").status_code == 200


def test_a_version_that_does_not_start(
    server: Server, ada: Client, exports: tuple[Path, Path], tmp_path: Path, wait_until: WaitUntil
) -> None:
    """One that was damaged in the registry fails with the reason, never has a session, and hurts no other version."""
    third = tmp_path / "version"
    fresh_version(third, seed=2)
    alias = server.versions.register(TEAM, third, by="test", why="")
    kept = Path(server.settings.teams[TEAM].registry) / server.versions.version(TEAM, alias).hash
    damaged = next((kept / "policies").glob("*.safetensors"))
    damaged.write_bytes(damaged.read_bytes()[:-10])
    server.versions.deploy(TEAM, alias, by="test", why="")
    while server.versions.version(TEAM, alias).state == "deploying":
        assert ada.run(TEAM, draw={"index": 8}).version in ("v1", "v2"), "others are served meanwhile"
    failed = server.versions.version(TEAM, alias)
    assert failed.state == "failed"
    assert "is not what was exported" in failed.reason
    with pytest.raises(Refused, match="409 not_ready"):
        ada.open(TEAM, version=alias)
    with pytest.raises(NotNow):
        server.versions.promote(TEAM, alias, by="test", why="")
    wait_until(lambda: app_name(TEAM, alias) not in statuses(), "its processes to be gone", UP_S)


def test_retired_versions_have_no_processes(server: Server, ada: Client, wait_until: WaitUntil) -> None:
    """A session is open: refused. It has ended: retired, and its application is gone; its turns are still answered."""
    session = ada.open(TEAM, version="v2")
    last = [(k, session.turn(k)) for k in ("a", "b", "c")][-1]
    server.versions.drain(TEAM, "v2", by="test", why="")
    server.versions.rollback(TEAM, "v2", by="test", why="the other tests' sessions end", pinned="end")
    server.versions.retire(TEAM, "v2", by="test", why="")
    wait_until(lambda: app_name(TEAM, "v2") not in statuses(), "its processes to be gone", UP_S)
    assert session.turn(last[0]) == last[1]
    server.versions.deploy(TEAM, "v2", by="test", why="")
    wait_until(lambda: server.versions.version(TEAM, "v2").state == "ready", "it to be back", UP_S)


def test_the_asynchronous_client(server: Server) -> None:
    """The same, awaited."""

    async def talk() -> None:
        async with AsyncClient(server.url, "ada-token-0123456789") as client:
            session = await client.open(TEAM, draw={"index": 2})
            turns = [turn async for turn in session]
            assert [t.turn for t in turns] == [0, 1, 2]
            assert turns[-1].ended
            again = await client.run(TEAM, draw={"index": 2}, version=session.version)
            assert again.outcome == turns[-1].outcome

    asyncio.run(talk())


def test_a_few_swaps_and_kills(server: Server, wait_until: WaitUntil) -> None:
    """Five swaps, twenty sessions that each live through three of them; a replica and a router are killed."""
    wait_until(lambda: stands(server) >= {"v1", "v2"}, "both versions to be ready", UP_S)
    storm = Storm(swaps=5, sessions=20, every=1, kills={1: "replica", 3: "router"}, seen_s=1.5)
    told = asyncio.run(stormy(server, "ada-token-0123456789", storm, lambda n: swapped(server, n)))
    assert faults(store_of(server), told, storm.sessions) == []
    assert {v for s in told.versions.values() for v in s} == {"v1", "v2"}
    assert told.retried > 0, "somebody was hit"
