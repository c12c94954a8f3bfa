"""Rewards from outside: looked over, kept once, durable."""

import pickle
import threading
from typing import Any

import pytest

from rewards.standardize import RewardStandardizer
from runtime.store import Store, feedback
from serving.errors import NoSuchSession
from serving.rollout.feedback import Accepting, BadFeedback, KeyTaken, Receipt, Said, standardized, submit
from serving.rollout.plan import RewardRule
from tests.serving.rollout.sessions import TEAM, played, records

ANY = Accepting(rule=RewardRule())


def said(value: float = 1.0, key: str = "k", **fields: Any) -> Said:
    return Said(session="s", value=value, key=key, **fields)


@pytest.fixture
def store(kept: Store) -> Store:
    played(kept, "v1", records("s"))
    return kept


def values(store: Store) -> list[float]:
    return [f.value for f in store.read(lambda c: feedback.of_session(c, TEAM, "s"))]


def test_said_twice_under_one_key_it_counts_once(store: Store) -> None:
    """The second answer says so; another value under the same key is refused."""
    assert submit(store, TEAM, said(), ANY, 5.0) == Receipt(judged=True)
    assert submit(store, TEAM, said(), ANY, 6.0) == Receipt(judged=True, repeated=True)
    with pytest.raises(KeyTaken, match="give a new one"):
        submit(store, TEAM, said(2.0), ANY, 7.0)
    assert values(store) == [1.0]


def test_said_many_times_at_once_it_counts_once(store: Store) -> None:
    """Threads that say the same: one is new, the others repeat it."""
    receipts: list[Receipt] = []
    threads = [
        threading.Thread(target=lambda: receipts.append(submit(store, TEAM, said(), ANY, 5.0))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r.repeated for r in receipts) == [False] + [True] * 7
    assert values(store) == [1.0]


def test_the_first_word_on_a_whole_session_is_judged_and_every_word_is_kept(store: Store) -> None:
    """A second opinion, and one on a decision, are kept for training; a version is judged by one reward a session."""
    assert submit(store, TEAM, said(0.5, "a", decision="s/clerk/0"), ANY, 1.0).judged is False
    assert submit(store, TEAM, said(1.0, "b"), ANY, 2.0).judged is True
    assert submit(store, TEAM, said(0.0, "c", source="auditor"), ANY, 3.0).judged is False
    assert values(store) == [0.5, 1.0, 0.0]


def test_what_cannot_be_is_refused_and_leaves_nothing(store: Store) -> None:
    """No number, out of bounds, no such session, no such decision."""
    bounded = Accepting(rule=RewardRule(low=0.0, high=1.0))
    for wrong in (said(float("nan")), said(float("inf")), said(1.5), said(-0.1)):
        with pytest.raises(BadFeedback):
            submit(store, TEAM, wrong, bounded, 1.0)
    with pytest.raises(NoSuchSession):
        submit(store, TEAM, Said(session="another", value=1.0, key="k"), ANY, 1.0)
    with pytest.raises(NoSuchSession):
        submit(store, "another team", said(), ANY, 1.0)
    with pytest.raises(BadFeedback, match="write SESSION/AGENT/TURN"):
        submit(store, TEAM, said(decision="s/clerk/1"), ANY, 1.0)
    assert values(store) == []
    assert submit(store, TEAM, said(), ANY, 1.0).repeated is False


def test_a_refusal_survives_pickling() -> None:
    """Routers and versions are processes of their own."""
    for error in (BadFeedback("no"), KeyTaken("no")):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(again), str(again), again.status) == (type(error), str(error), error.status)


def test_it_is_standardized_by_the_versions_own_frozen_statistics() -> None:
    """An agent's decisions by the agent's, a whole session by the team's; where there are none, not at all."""
    statistics = RewardStandardizer()
    statistics.update("clerk", [0.0, 10.0])
    frozen = statistics.state()
    assert standardized(said(10.0, decision="s/clerk/0"), frozen) == pytest.approx(1.0)
    assert standardized(said(10.0), frozen) is None
    assert standardized(said(10.0), {}) is None
    statistics.update("team", [0.0, 20.0])
    assert standardized(said(0.0), statistics.state()) == pytest.approx(-1.0)
