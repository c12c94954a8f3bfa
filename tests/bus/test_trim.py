"""Streams are cut, but never below what a registered group still needs; the outbox forgets what all have had."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.bus import EventBus, Safety
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

STREAM = "agent_events:shop:ear"


def sent(bus: EventBus, redis: Any, count: int, wait_until: WaitUntil) -> None:
    before = redis.xlen(STREAM)
    bus.publish_all([said(n) for n in range(count)])
    wait_until(lambda: redis.xlen(STREAM) == before + count, "the events on the stream")


def test_a_lagging_group_keeps_what_it_has_not_read(make_bus: MakeBus, redis: Any, wait_until: WaitUntil) -> None:
    """Three groups, one of them far behind: it gets every event all the same; then the stream is short."""
    bus = make_bus()
    bus.start()
    late = bus.consumer("late", "ear", "late-0", writes_down)
    for group in ("role", "recorder"):
        bus.consumer(group, "ear", f"{group}-0", lambda d: None).start()
    bus.publish_all([said(n) for n in range(300)])
    wait_until(lambda: bus.stats()["pending"][STREAM] == 0 and bus.stats()["length"][STREAM] == 300, "the quick groups")
    assert bus.stats()["lag"][STREAM] == 300
    late.start()
    wait_until(lambda: len(noted(bus)) == 300, "the late group")
    wait_until(lambda: redis.xlen(STREAM) <= 1, "the cut")
    wait_until(lambda: bus.store.read(kept) == 0, "an empty outbox")


def kept(connection: Any) -> int:
    return connection.exec_driver_sql("SELECT count(*) FROM outbox").scalar_one()


def test_nothing_is_cut_while_a_registered_group_is_missing(
    make_bus: MakeBus, redis: Any, wait_until: WaitUntil
) -> None:
    """A group that Redis has forgotten still counts."""
    bus = make_bus()
    bus.start(keep=False)
    bus.register("recorder", ["ear"])
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    sent(bus, redis, 20, wait_until)
    wait_until(lambda: len(noted(bus)) == 20, "the events")
    redis.xgroup_destroy(STREAM, "recorder")
    assert bus.keep()
    assert redis.xlen(STREAM) == 20
    bus.unregister("recorder", "ear")
    wait_until(lambda: redis.xpending(STREAM, "role")["pending"] == 0, "the acknowledgements")
    assert bus.keep()
    assert redis.xlen(STREAM) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["add", "read a", "read b", "ack a", "ack b"]), max_size=30))
def test_whatever_groups_do_no_entry_is_cut_that_one_needs(make_bus: MakeBus, redis: Any, steps: list[str]) -> None:
    """After any sequence of adding, reading and acknowledging, all that is pending or unread is still there."""
    redis.flushall()
    bus = make_bus(store=None)
    for group in ("a", "b"):
        bus.register(group, ["ear"])
    from runtime.bus.trim import trim

    added: list[bytes] = []
    had: dict[str, set[bytes]] = {"a": set(), "b": set()}
    for step in steps:
        what, _, group = step.partition(" ")
        if what == "add":
            bus.publish(said(len(added)))
            added.append(redis.xrevrange(STREAM, count=1)[0][0])
        elif what == "read":
            redis.xreadgroup(group, "me", {STREAM: ">"}, count=2)
        else:
            for pending in redis.xpending_range(STREAM, group, "-", "+", 1):
                redis.xack(STREAM, group, pending["message_id"])
                had[group].add(pending["message_id"])
        trim(bus._parts)
    left = {e for e, _ in redis.xrange(STREAM)}
    assert {e for e in added if e not in had["a"] or e not in had["b"]} <= left


def test_cut_by_length_events_are_lost(make_bus: MakeBus, redis: Any, wait_until: WaitUntil) -> None:
    """Safe trimming is needed: cut at a length, whoever reads late never sees the rest."""
    bus = make_bus(settings=replace(QUICK, trim_length=10, safety=Safety(safe_trim=False)))
    bus.start(keep=False)
    bus.register("role", ["ear"])
    sent(bus, redis, 50, wait_until)
    wait_until(lambda: bus.store.read(marked) == 50, "the outbox to know")
    bus.keep()
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: redis.xinfo_groups(STREAM)[0]["lag"] == 0, "the end of the stream")
    bus.keep()
    assert (redis.xlen(STREAM), len(noted(bus))) == (10, 0)  # what is left waits for ever for what was cut


def marked(connection: Any) -> int:
    return connection.exec_driver_sql("SELECT count(*) FROM outbox WHERE entry <> ''").scalar_one()


def test_the_complete_log_is_cut_by_age(make_bus: MakeBus, redis: Any) -> None:
    """It is a view: it has no groups, and keeps what is younger than the limit, give or take a block."""
    bus = make_bus(settings=replace(QUICK, log_s=100.0))
    for _ in range(500):
        redis.xadd("agent_events", {"stream": "x", "payload": "old"}, id="1-*")
    redis.xadd("agent_events", {"stream": "x", "payload": "young"})
    bus.keep()
    assert redis.xlen("agent_events") < 200
    assert redis.xrevrange("agent_events", count=1)[0][1][b"payload"] == b"young"
