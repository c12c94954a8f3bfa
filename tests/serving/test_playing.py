"""A version's replicas at play, without a server: any goes on, one commits, and the fences hold."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assembly.versions import Version, load_version
from runtime.records import Decided, EpisodeEnded, Json
from runtime.store import Store, history, pins, snapshots
from serving.pins import STATE, touch
from serving.playing import Answer, Player, first_state
from serving.rollout.kept import news
from serving.rollout.outcome import Outcome
from serving.rollout.tables import make_tables
from serving.tables import open_serving_store
from tests.postgres import empty_postgres, postgres
from tests.serving.conftest import TEAM

__all__ = ["empty_postgres", "postgres"]
DRAW: Json = {"draw": {"split": "eval", "seed": 2, "index": 3}}


@pytest.fixture(scope="module")
def version(exports: tuple[Path, Path]) -> Version:
    return load_version(exports[0])


def opened(store: Store, name: str = "s", alias: str = "v1", payload: Json = DRAW) -> str:
    def first(connection: object) -> None:
        pins.pin(connection, TEAM, name, alias, 1.0)
        state = first_state(payload)
        snapshots.save(connection, [snapshots.Saving(team=TEAM, role=STATE, session=name, state=state)], 1.0)

    store.write(first)
    return name


def decided(store: Store, session: str) -> list[tuple[str, int, str]]:
    records = store.read(lambda c: history.of_session(c, TEAM, session))
    assert sum(isinstance(r, EpisodeEnded) for r in records) == 1
    return [(r.agent, r.turn, r.call.tool) for r in records if isinstance(r, Decided)]


def played_in_turn(stores: list[Store], version: Version) -> list[tuple[str, int, str]]:
    """A session whose every turn is played by another replica."""
    session = opened(stores[0])
    for number, store in enumerate(stores):
        assert Player(version, "v1", store).turn(session, f"t{number}")["status"] == "ok"
    return decided(stores[0], session)


def test_any_replica_goes_on(version: Version, tmp_path: Path) -> None:
    """Three replicas, a turn each: the same decisions as one replica takes alone, and nothing is kept at the end."""
    stores = [open_serving_store(f"sqlite:///{tmp_path / 'a.db'}") for _ in range(3)]
    alone = open_serving_store(f"sqlite:///{tmp_path / 'b.db'}")
    assert played_in_turn(stores, version) == played_in_turn([alone] * 3, version)
    assert alone.read(lambda c: snapshots.load(c, TEAM, STATE, "s")) is None
    assert alone.read(lambda c: pins.open_pins(c, TEAM)) == {}
    for store in [*stores, alone]:
        store.close()


def test_on_postgresql(version: Version, empty_postgres: str, tmp_path: Path) -> None:
    """The same on a server that many machines share; sixteen at once are one turn there, too."""
    stores = [open_serving_store(empty_postgres) for _ in range(3)]
    alone = open_serving_store(f"sqlite:///{tmp_path / 'b.db'}")
    assert played_in_turn(stores, version) == played_in_turn([alone] * 3, version)
    session = opened(stores[0], "crowd")
    players = [Player(version, "v1", s) for s in stores]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: players[i % 3].turn(session, "one"), range(16)))
    assert {a["status"] for a in answers} == {"ok"}
    assert len({str(a.get("turn")) for a in answers}) == 1
    records = stores[0].read(lambda c: history.of_session(c, TEAM, session))
    assert set(Counter(r.decision_id for r in records if isinstance(r, Decided)).values()) == {1}
    for store in [*stores, alone]:
        store.close()


def test_a_session_of_another_version_is_not_played(version: Version, store: Store) -> None:
    """Nor one that is over, or that nobody opened."""
    session = opened(store, alias="v2")
    assert Player(version, "v1", store).turn(session, "t") == {"status": "elsewhere", "version": "v2"}
    assert Player(version, "v1", store).turn("none", "t") == {"status": "no_such_session"}
    store.write(lambda c: pins.unpin(c, TEAM, session, 2.0))
    assert Player(version, "v2", store).turn(session, "t")["status"] == "over"
    assert store.read(lambda c: history.of_session(c, TEAM, session)) == []


class Overtaking(Player):
    """A replica that stands still between its decision and its commit, while something else happens."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def _commit(self, *args: Any, **more: Any) -> None:
        happen, self.meanwhile = self.meanwhile, lambda: None
        happen()
        super()._commit(*args, **more)


def test_a_replica_that_was_overtaken_commits_nothing(version: Version, store: Store) -> None:
    """The committed answer is given, whoever played it."""
    session, other = opened(store), Player(version, "v1", store)
    slow = Overtaking(version, "v1", store)
    first: list[object] = []
    slow.meanwhile = lambda: first.append(other.turn(session, "t0").get("turn"))
    answer = slow.turn(session, "t0")
    assert (answer.get("turn"), answer.get("again")) == (first[0], True)
    records = store.read(lambda c: history.of_session(c, TEAM, session))
    assert set(Counter(r.decision_id for r in records if isinstance(r, Decided)).values()) == {1}


def test_a_session_moved_or_ended_meanwhile(version: Version, store: Store) -> None:
    """A zombie of the old version writes nothing any more."""
    moved, ended = opened(store, "moved"), opened(store, "ended")
    slow = Overtaking(version, "v1", store)
    slow.meanwhile = lambda: store.write(
        lambda c: c.exec_driver_sql("UPDATE pins SET version='v2' WHERE session='moved'")
    )
    assert slow.turn(moved, "t0") == {"status": "elsewhere", "version": "v2"}
    slow.meanwhile = lambda: store.write(lambda c: pins.unpin(c, TEAM, ended, 2.0))
    assert slow.turn(ended, "t0")["status"] == "over"
    for session in (moved, ended):
        assert store.read(lambda c, s=session: history.of_session(c, TEAM, s)) == []


def test_without_the_fence_a_turn_doubles(version: Version, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests above would see if commits were not fenced: they can fail."""
    monkeypatch.setattr("serving.playing.touch", lambda c, t, s, v, at: touch(c, t, s, v, at) or True)
    session = opened(store)
    slow = Overtaking(version, "v1", store)
    slow.meanwhile = lambda: store.write(lambda c: pins.unpin(c, TEAM, session, 2.0))
    assert slow.turn(session, "t0")["status"] == "ok"
    assert store.read(lambda c: history.of_session(c, TEAM, session)) != []


def test_a_store_that_is_away_is_told_as_busy(version: Version, tmp_path: Path) -> None:
    """The turn may be asked for again: nothing is wrong with it."""
    store = open_serving_store(f"sqlite:///{tmp_path / 'gone.db'}")
    session = opened(store)
    player = Player(version, "v1", store)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE snapshots RENAME TO away")
    assert player.turn(session, "t0")["status"] == "busy"
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO snapshots")
    assert player.turn(session, "t0")["status"] == "ok"
    store.close()


def test_a_case_that_lacks_its_truth_speaks_against_no_version(version: Version, store: Store) -> None:
    """What is missing is named, however late it is asked for; the version is not judged by it."""
    make_tables(store)
    session = opened(store, payload={"open": {"id": "half", "visible": {"sku": "SKU-1"}, "truth": {}, "seed": 0}})
    player = Player(version, "v1", store)
    answer: Answer = {"status": "ok"}
    for turn in range(4):
        if answer["status"] == "ok":
            answer = player.turn(session, f"t{turn}")
    assert answer["status"] == "impossible"
    assert "the case has no truth.cause" in answer.get("message", "")
    assert not store.read(lambda c: news(c, TEAM))


def test_a_version_that_raises_for_another_reason_is_judged_by_it(version: Version, store: Store) -> None:
    """Though the case has no truth, as live ones have none: what was raised is not about that."""
    make_tables(store)
    session = opened(store, payload={"open": {"id": "live", "visible": {}, "truth": {}, "seed": 0}})
    assert Raising(version, "v1", store).turn(session, "t0")["status"] == "failed"
    (told,) = store.read(lambda c: news(c, TEAM))
    assert told.outcome.error


class Raising(Player):
    """A version whose own code raises."""

    def _play(self, session: str, key: str, before: snapshots.Snapshot) -> dict[str, Json]:
        raise RuntimeError("a bug of the team's")


def test_a_version_that_raises_is_judged_by_it(version: Version, store: Store) -> None:
    """Once a session, also where its first turn fails and leaves no record; a case that nobody can play is none."""
    make_tables(store)
    session, senseless = opened(store), opened(store, "senseless", payload={"nothing": 0})
    raising = Raising(version, "v1", store)
    assert [raising.turn(session, key)["status"] for key in ("t0", "t1")] == ["failed", "failed"]
    assert Player(version, "v1", store).turn(senseless, "t0")["status"] == "impossible"
    (told,) = store.read(lambda c: news(c, TEAM))
    assert told.outcome == Outcome(session=session, version="v1", opened=1.0, error=True)


def test_a_live_turn_keeps_its_session_from_idling_out(version: Version, store: Store) -> None:
    """The pin's time is that of the last turn."""
    session, idle = opened(store), opened(store, "idle")
    Player(version, "v1", store, clock=lambda: 100.0).turn(session, "t0")
    assert store.write(lambda c: pins.expire(c, TEAM, 50.0, 101.0)) == 1
    player = Player(version, "v1", store, clock=lambda: 102.0)
    assert player.turn(session, "t1")["status"] == "ok"
    assert player.turn(idle, "t0")["status"] == "over"
