"""What the store keeps: states, owners, pins, records, feedback, facts; the same on both kinds."""

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import Fenced
from runtime.facts import FactBoard, FactChanged
from runtime.records import Feedback, StateChanged
from runtime.store import Store, feedback, history, inbox, outbox, owners, pins, snapshots
from runtime.store.base import Clash
from runtime.store.inbox import Had
from runtime.store.outbox import Row
from runtime.store.snapshots import Saving


def saving(state: Any, **fields: Any) -> Saving:
    return Saving(team="t", role="r", session="s", state=state, **fields)


def test_a_state_is_kept_with_its_schema_epoch_and_revision(store: Store) -> None:
    """Every write counts; a writer that read an older one is told, and changes nothing."""
    assert store.read(lambda c: snapshots.load(c, "t", "r", "s")) is None
    store.write(lambda c: snapshots.save(c, [saving({"ü": 1}, schema=2, epoch=7, expected=0)], 5.0))
    store.write(lambda c: snapshots.save(c, [saving([2]), saving([3], expected=2)], 6.0))
    found = store.read(lambda c: snapshots.load(c, "t", "r", "s"))
    assert found
    assert (found.state, found.schema, found.epoch, found.revision, found.at) == ([3], 1, 0, 3, 6.0)
    for stale in (0, 1, 2):
        with pytest.raises(Clash):
            store.write(lambda c, n=stale: snapshots.save(c, [saving("stale", expected=n)], 7.0))
    assert store.read(lambda c: snapshots.load(c, "t", "r", "s")) == found
    assert store.read(lambda c: snapshots.sessions(c, "t", "r")) == ["s"]
    store.write(lambda c: snapshots.drop(c, "t", "s"))
    assert store.read(lambda c: snapshots.sessions(c, "t", "r")) == []


def test_each_owner_fences_the_one_before(store: Store) -> None:
    """Epochs only rise."""
    first = store.write(lambda c: owners.claim(c, "t/r", 1.0))
    store.write(lambda c: owners.check(c, first))
    second = store.write(lambda c: owners.claim(c, "t/r", 2.0))
    with pytest.raises(Fenced):
        store.write(lambda c: owners.check(c, first))
    store.write(lambda c: owners.check(c, second))
    assert (first.epoch, second.epoch) == (1, 2)


def test_a_pin_is_given_once(store: Store) -> None:
    """However many ask at once, all get the same version; an ended session is open no more."""
    got = [store.write(lambda c, v=v: pins.pin(c, "t", "s", v, 1.0)) for v in ("v1", "v2", "v1")]
    assert got == ["v1", "v1", "v1"]
    store.write(lambda c: pins.pin(c, "t", "s2", "v2", 50.0))
    assert store.read(lambda c: pins.open_pins(c, "t")) == {"v1": 1, "v2": 1}
    assert store.write(lambda c: pins.expire(c, "t", 10.0, 60.0)) == 1
    store.write(lambda c: pins.unpin(c, "t", "s2", 61.0))
    assert store.read(lambda c: pins.open_pins(c, "t")) == {}
    assert store.read(lambda c: pins.pinned(c, "t", "s")) == "v1"
    assert store.read(lambda c: pins.pinned(c, "t", "unknown")) is None


def test_records_and_feedback_come_back_in_order(store: Store) -> None:
    """As they were."""
    records = [StateChanged(correlation_id="s", at=float(i), agent="a", before="x", after="y") for i in range(3)]
    store.write(lambda c: history.add(c, "t", [(r, "e") for r in records]))
    assert store.read(lambda c: history.of_session(c, "t", "s")) == records
    said = [Feedback(correlation_id="s", at=1.0, value=0.5, source="user"),
            Feedback(correlation_id="s", at=2.0, value=1.0, decision_id="s/a/0")]  # fmt: skip
    for f in said:
        store.write(lambda c, f=f: feedback.add(c, "t", f))
    assert store.read(lambda c: feedback.of_session(c, "t", "s")) == said


def test_numbers_have_no_gaps_and_cursors_follow(store: Store) -> None:
    """Each line counts by itself, also several times in one transaction; an event is had once."""
    lines = [("s", "a", "b"), ("s", "a", "c"), ("s", "a", "b")]
    assert store.write(lambda c: outbox.numbers(c, "t", lines, 1.0)) == [1, 1, 2]
    assert store.write(lambda c: outbox.numbers(c, "t", lines, 1.0)) == [3, 2, 4]
    had = [Had("e1", lines[0], 1), Had("e2", lines[0], 2)]
    store.write(lambda c: inbox.commit(c, "t", "g", had, 1.0))
    with pytest.raises(Clash):
        store.write(lambda c: inbox.commit(c, "t", "g", [Had("e3", lines[0], 3), had[0]], 1.0))
    assert store.read(lambda c: inbox.outcomes(c, "g", ["e1", "e2", "e3"])) == {"e1": "done", "e2": "done"}
    assert store.read(lambda c: inbox.lasts(c, "t", "g", ["s"])) == {lines[0]: 2}


def test_who_was_given_up_on_cannot_mark_an_event_as_sent(store: Store) -> None:
    """A sender that slept while another took its event over: the event is still to be sent."""
    rows = [Row("st", f"e{i}", ("x",), 10.0) for i in range(3)]
    store.write(lambda c: outbox.put(c, "t", rows))
    assert store.write(lambda c: outbox.claim_unsent(c, "t", 5.0, 20.0, 10)) == []
    taken = store.write(lambda c: outbox.claim_unsent(c, "t", 15.0, 20.0, 2))
    assert [(r.event_id, r.claim, r.values) for r in taken] == [("e0", 20.0, ("x",)), ("e1", 20.0, ("x",))]
    sent = [Row(r.stream, r.event_id, r.values, r.claim, "1-1") for r in rows]
    store.write(lambda c: outbox.mark_sent(c, sent))
    assert store.read(lambda c: outbox.unsent(c, "t")) == 2
    store.write(lambda c: outbox.release(c, taken))
    assert store.read(lambda c: outbox.any_unsent(c, "t", 1.0))


def test_silent_lines_are_forgotten_whole_or_not_at_all(store: Store) -> None:
    """A number that outlives its cursors would wait for ever; a cursor that outlives its number would lose events."""
    old, behind, fresh = (("s1", "a", "b"), ("s2", "a", "b"), ("s3", "a", "b"))
    store.write(lambda c: outbox.numbers(c, "t", [old, behind, fresh, fresh], 1.0))
    store.write(lambda c: inbox.commit(c, "t", "g", [Had("e1", old, 1), Had("e2", fresh, 1)], 2.0))
    store.write(lambda c: inbox.commit(c, "t", "h", [Had("e2", fresh, 2)], 9.0))
    store.write(lambda c: inbox.commit(c, "t", "h", [Had("e3", behind, 0)], 2.0))
    assert store.write(lambda c: inbox.prune(c, 5.0, 5.0)) == 3
    assert store.write(lambda c: outbox.numbers(c, "t", [old, fresh], 10.0)) == [1, 3]
    assert store.read(lambda c: inbox.lasts(c, "t", "g", ["s1", "s3"])) == {fresh: 1}


def test_a_fact_changes_only_from_what_was_read(store: Store) -> None:
    """Compare-and-set; every version is kept; what one agent puts up, another sees at its next look."""
    ours, theirs = (FactBoard(store, "t", now=lambda: 3.0) for _ in range(2))
    assert ours.get("price") is None
    first = ours.put("price", {"usd": 5}, author="a", expected=0)
    assert theirs.get("price") == first
    theirs.put("price", {"usd": 6}, author="b", expected=1)
    with pytest.raises(FactChanged, match="price has version 2, not 1: read it again"):
        ours.put("price", {"usd": 7}, author="a", expected=1)
    assert [(f.version, f.value, f.author) for f in ours.history("price")] == [
        (1, {"usd": 5}, "a"),
        (2, {"usd": 6}, "b"),
    ]
    assert {n: f.version for n, f in ours.all().items()} == {"price": 2}
    assert FactBoard(store, "other").all() == {}


def test_concurrent_changes_of_a_fact_are_all_counted(store: Store) -> None:
    """Whoever was slower reads again; nothing is overwritten unseen."""
    board = FactBoard(store, "t")

    def change() -> None:
        for _ in range(5):
            board.change("n", lambda v: (v or 0) + 1, author="x", tries=200)

    threads = [threading.Thread(target=change) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (board.get("n").value, len(board.history("n"))) == (20, 20)
    with pytest.raises(ValueError, match="no text"):
        board.change("n", lambda v: (_ for _ in ()).throw(ValueError("no text")), author="x")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3), max_leaves=6))  # fmt: skip  # noqa: E501
def test_any_json_comes_back_as_it_was(store: Store, value: Any) -> None:
    """States and facts, whatever texts they hold; a NUL, which PostgreSQL cannot keep as such, included."""
    store.write(lambda c: snapshots.save(c, [saving(value)], 1.0))
    assert store.read(lambda c: snapshots.load(c, "t", "r", "s")).state == value
