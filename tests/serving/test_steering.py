"""Versions steered and sessions pinned, on a real store and a real Valkey, without a server."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from runtime.embedded import EmbeddedRedis, client_of, serve
from runtime.store import Store, pins
from serving.choosing import View
from serving.errors import Busy, NotNow, UnknownVersion
from serving.pins import Pins
from serving.registry import Objects
from serving.steering import Steering
from serving.versions import Known, Versions, ledger, ratios
from tests.serving.conftest import TEAM

WHO = {"by": "ada", "why": "because"}


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with serve(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(valkey: EmbeddedRedis) -> Iterator[Any]:
    client = client_of(valkey.reference)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def versions(store: Store, redis: Any, tmp_path: Path) -> Versions:
    """v1 is current, v2 and v3 are ready, v4 is only registered."""
    made = Versions(store, {TEAM: Objects(str(tmp_path / "registry"))}, lambda: redis)
    for number in range(1, 5):
        lineage = {"plays": "same" if number < 3 else "other"}
        store.write(lambda c, n=number, k=lineage: ledger.register(c, TEAM, f"{n}" * 32, k, 0.0))
        if number < 4:
            made.deploy(TEAM, f"v{number}", **WHO)
            made.settle(made.version(TEAM, f"v{number}"), "ready", "", "server")
    made.promote(TEAM, "v1", **WHO)
    return made


def looked(versions: Versions) -> bool:
    """As a router looks at what operators have written."""
    return versions.adopt(TEAM, versions.known(TEAM))


def test_it_is_what_rollouts_steer_with(versions: Versions) -> None:
    """The protocol, kept by type and by deed."""
    steering: Steering = versions
    assert steering.current(TEAM) == "v1"
    steering.canary(TEAM, "v2", 0.05, **WHO)
    assert steering.ratios(TEAM) == {"v2": 0.05}
    steering.promote(TEAM, "v2", **WHO)
    assert (steering.current(TEAM), steering.ratios(TEAM)) == ("v2", {})
    steering.rollback(TEAM, "v2", **WHO)
    assert steering.current(TEAM) == "v1"
    assert [c.action for c in versions.history(TEAM)][-3:] == ["canary", "promote", "rollback"]
    assert {(c.by, c.why) for c in versions.history(TEAM)[-3:]} == {("ada", "because")}


def test_ratios_are_exact(versions: Versions) -> None:
    """Of 20,000 new sessions, each of two canaries gets its share, inside the 99.9% binomial bounds."""
    versions.canary(TEAM, "v2", 0.01, **WHO)
    versions.canary(TEAM, "v3", 0.20, **WHO)
    view = View(TEAM, tuple(versions.known(TEAM)), "v1")
    got = Counter(view.choose(f"session-{i}") for i in range(20_000))
    for alias, share in (("v1", 0.79), ("v2", 0.01), ("v3", 0.20)):
        low, high = binom.ppf([0.0005, 0.9995], 20_000, share)
        assert low <= got[alias] <= high, (alias, got)
    assert [view.choose(f"session-{i}") for i in range(50)] == [view.choose(f"session-{i}") for i in range(50)]


def test_what_may_not_be_is_refused(versions: Versions) -> None:
    """With the reason, and nothing has changed."""
    versions.canary(TEAM, "v2", 0.6, **WHO)
    before = len(versions.history(TEAM))
    for attempt, code in (
        (lambda: versions.canary(TEAM, "v3", 0.5, **WHO), "bad_ratio"),
        (lambda: versions.canary(TEAM, "v2", -0.1, **WHO), "bad_ratio"),
        (lambda: versions.canary(TEAM, "v1", 0.1, **WHO), "bad_ratio"),
        (lambda: versions.canary(TEAM, "v4", 0.1, **WHO), "bad_ratio"),
        (lambda: versions.promote(TEAM, "v4", **WHO), "not_ready"),
        (lambda: versions.drain(TEAM, "v1", **WHO), "current"),
        (lambda: versions.retire(TEAM, "v1", **WHO), "current"),
        (lambda: versions.rollback(TEAM, "v1", **WHO), "no_heir"),
    ):
        with pytest.raises(NotNow) as refused:
            attempt()
        assert refused.value.code == code
    with pytest.raises(UnknownVersion):
        versions.promote(TEAM, "v7", **WHO)
    assert len(versions.history(TEAM)) == before
    assert versions.ratios(TEAM) == {"v2": 0.6}


def test_operators_switch_in_redis(versions: Versions, redis: Any) -> None:
    """A key by hand is taken over, once, with ``redis`` as who; 5% is 0.05; other keys mean nothing."""
    redis.set("supply_chain_v2_ratio", "5%")
    redis.set("supply_chain_v9_ratio", "0.5")
    redis.set("other_team_v2_ratio", "0.5")
    assert looked(versions)
    assert not looked(versions)
    assert versions.ratios(TEAM) == {"v2": 0.05}
    assert versions.history(TEAM)[-1].by == "redis"
    redis.set("supply_chain_v2_ratio", "0")
    assert looked(versions)
    assert versions.ratios(TEAM) == {}


def test_ratios_over_one_are_refused_and_the_last_hold(versions: Versions, redis: Any) -> None:
    """On record once, however often and by however many routers it is seen; taken over when it fits again."""
    redis.set("supply_chain_v2_ratio", "0.6")
    assert looked(versions)
    redis.set("supply_chain_v3_ratio", "0.6")
    for _ in range(3):
        assert not looked(versions)
    assert versions.ratios(TEAM) == {"v2": 0.6}
    assert [c.action for c in versions.history(TEAM)].count("canary_refused") == 1
    assert "sum to 1.2" in versions.history(TEAM)[-1].why
    redis.set("supply_chain_v2_ratio", "0.4")
    assert looked(versions)
    assert versions.ratios(TEAM) == {"v2": 0.4, "v3": 0.6}


def test_an_emptied_or_restored_redis_changes_nothing(versions: Versions, redis: Any) -> None:
    """Ratios are put back after FLUSHALL; an old value that a restore brings back is not taken for an operator's."""
    versions.canary(TEAM, "v2", 0.3, **WHO)
    old = {k: redis.get(k) for k in redis.keys("*v2*")}
    versions.canary(TEAM, "v2", 0.1, **WHO)
    redis.mset(old)
    assert not looked(versions)
    assert versions.ratios(TEAM) == {"v2": 0.1}
    assert redis.get("supply_chain_v2_ratio") == b"0.1"
    redis.flushall()
    assert not looked(versions)
    assert redis.get("supply_chain_v2_ratio") == b"0.1"
    assert ratios.read(redis, TEAM, ["v2"])["v2"] is not None


def test_steering_does_without_redis(store: Store, versions: Versions, tmp_path: Path) -> None:
    """A rollback holds at once; Redis is told when it is back."""

    def gone() -> Any:
        raise OSError("no Redis")

    blind = Versions(store, {TEAM: Objects(str(tmp_path / "registry"))}, gone)
    versions.canary(TEAM, "v2", 0.5, **WHO)
    blind.rollback(TEAM, "v2", **WHO)
    assert blind.ratios(TEAM) == {}
    assert not looked(versions), "what Redis still says is old"
    assert versions.ratios(TEAM) == {}


def opened(sessions: Pins, version: str, count: int = 3) -> list[str]:
    names = [f"{version}-{i}" for i in range(count)]
    for name in names:
        sessions.open(TEAM, name, version, {"to": "", "payload": None, "turns": 0})
    return names


@pytest.fixture
def sessions(store: Store, redis: Any) -> Pins:
    return Pins(store, lambda: redis, 3600.0)


def test_pinned_sessions_at_a_rollback(versions: Versions, sessions: Pins) -> None:
    """They finish, go on with the heir where it plays the same team, or end."""
    for pinned, version in (("finish", "v2"), ("end", "v3")):
        names = opened(sessions, version)
        versions.rollback(TEAM, version, pinned=pinned, **WHO)
        assert [sessions.right(TEAM, n).open for n in names] == [pinned == "finish"] * 3
        assert {sessions.right(TEAM, n).version for n in names} == {version}
    versions.deploy(TEAM, "v2", **WHO)
    versions.settle(versions.version(TEAM, "v2"), "ready", "", "server")
    versions.rollback(TEAM, "v2", pinned="migrate", **WHO)
    assert {sessions.right(TEAM, f"v2-{i}").version for i in range(3)} == {"v1"}
    assert versions.history(TEAM)[-1].what["sessions"] == 3


def test_no_migration_to_another_team(versions: Versions, sessions: Pins) -> None:
    """Sessions whose records would mean something else there stay, and nothing is rolled back half way."""
    (name, *_) = opened(sessions, "v3")
    with pytest.raises(NotNow, match="do not play the same team"):
        versions.rollback(TEAM, "v3", pinned="migrate", **WHO)
    assert sessions.right(TEAM, name).version == "v3"
    assert versions.version(TEAM, "v3").state == "ready"


def test_retired_only_without_sessions(versions: Versions, sessions: Pins) -> None:
    """Draining takes no new sessions, not even those that ask; when the last has ended, it can be retired."""
    names = opened(sessions, "v2")
    versions.drain(TEAM, "v2", **WHO)
    with pytest.raises(NotNow, match="gets no new sessions"):
        sessions.open(TEAM, "late", "v2", {})
    assert sessions.find(TEAM, "late") is None
    with pytest.raises(NotNow, match="3 sessions are open"):
        versions.retire(TEAM, "v2", **WHO)
    for name in names:
        sessions.end(TEAM, name)
    versions.retire(TEAM, "v2", **WHO)
    assert versions.version(TEAM, "v2").state == "retired"


def test_one_pin_however_many_open_it(versions: Versions, store: Store, redis: Any) -> None:
    """Twenty routers pin one session to different versions at once: all are told the same one, on disk and in Redis."""
    routers = [Pins(store, lambda: redis, 3600.0) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        jobs = [pool.submit(r.open, TEAM, "one", f"v{1 + i % 3}", {"n": i}) for i, r in enumerate(routers)]
        told = [j.result() for j in jobs]
    assert len({version for version, _ in told}) == 1
    assert sum(new for _, new in told) == 1
    (version,) = {v for v, _ in told}
    assert store.read(lambda c: pins.pinned(c, TEAM, "one")) == version
    assert redis.get(f"serving:pin:{TEAM}:one").decode() == version


def test_pins_without_redis(store: Store, versions: Versions) -> None:
    """The store alone is enough."""

    def gone() -> Any:
        raise OSError("no Redis")

    blind = Pins(store, gone, 3600.0)
    assert blind.open(TEAM, "s", "v2", {}) == ("v2", True)
    assert blind.open(TEAM, "s", "v1", {}) == ("v2", False)
    assert blind.find(TEAM, "s").version == "v2"


def test_choosing(versions: Versions) -> None:
    """A wish goes before ratios; without any version that is ready there is nothing to choose."""
    view = View(TEAM, tuple(versions.known(TEAM)), "v1")
    assert view.choose("s", "v3") == "v3"
    assert view.choose("s", "2" * 32) == "v2"
    with pytest.raises(NotNow, match="v1, v2, v3"):
        view.choose("s", "v4")
    with pytest.raises(Busy):
        View(TEAM, (Known(team=TEAM, alias="v1", hash="1", state="deploying"),), "v1").choose("s")
