"""What goes wrong on the way: Redis emptied, groups gone, senders and readers dead, leases run out, zombies."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import RedisError

from runtime.bus import Delivery, EventBus, Reading, Safety
from runtime.embedded import EmbeddedRedis, serve
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

STREAM = "agent_events:shop:ear"


def held(bus: EventBus, redis: Any, count: int, wait_until: WaitUntil) -> None:
    """Have a reader named ``dead`` be handed events, as if it had been killed before it handled them."""
    bus.register("role", ["ear"])
    bus.publish_all([said(n) for n in range(count)])
    wait_until(lambda: redis.xlen(STREAM) == count, "the events on the stream")
    redis.xreadgroup("role", "dead", {STREAM: ">"}, count=count)


def test_an_emptied_redis_is_filled_again(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """FLUSHALL: what no group has confirmed is sent again from the store, and nothing has its effect twice."""
    reader = bus.consumer("role", "ear", "ear-0", writes_down)
    bus.consumer("recorder", "ear", "recorder-0", writes_down).start()
    bus.publish_all([said(n) for n in range(20)])
    wait_until(lambda: len(noted(bus)) == 20, "one group")
    redis.flushall()
    reader.start()
    bus.publish_all([said(n) for n in range(20, 25)])
    wait_until(lambda: len(noted(bus)) == 50, "both groups")
    assert sorted(noted(bus), key=int) == [str(n) for n in range(25) for _ in range(2)]


def test_a_group_that_is_gone_begins_anew_and_repeats_nothing(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """XGROUP DESTROY, or a failover to a copy that had not heard of the group."""
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    bus.publish_all([said(n) for n in range(5)])
    wait_until(lambda: len(noted(bus)) == 5, "five events")
    redis.xgroup_destroy(STREAM, "role")
    bus.publish(said(5))
    wait_until(lambda: len(noted(bus)) == 6, "the sixth")
    assert noted(bus) == [str(n) for n in range(6)]


def test_entries_that_redis_lost_are_sent_again(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """Single entries gone (the end of a log after a failover), or pending ones forgotten by XGROUP DELCONSUMER."""
    held(bus, redis, 6, wait_until)
    redis.xdel(STREAM, redis.xrange(STREAM)[2][0])
    redis.xgroup_delconsumer(STREAM, "role", "dead")
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: len(noted(bus)) == 6, "six events")
    assert noted(bus) == [str(n) for n in range(6)]


def test_what_a_dead_sender_committed_is_sent_by_another(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """Killed between the commit and XADD: the outbox has the events, and whoever does the upkeep sends them."""
    dead, alive = make_bus(), make_bus()
    dead.publish_all([said(n) for n in range(5)])  # its relay was never started
    alive.consumer("role", "ear", "ear-0", writes_down).start()
    alive.start()
    wait_until(lambda: len(noted(alive)) == 5, "the events")


def test_what_a_dead_reader_had_goes_to_another(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """Once its lease has run out, whoever sweeps takes its events over; they count as tries that are not the first."""
    held(bus, redis, 6, wait_until)
    tries: list[int] = []

    def counts(delivery: Delivery) -> None:
        tries.append(delivery.attempt)
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", counts).start()
    wait_until(lambda: len(noted(bus)) == 6, "six events")
    assert tries == [2] * 6
    assert bus.stats()["redeliveries"] == 6


def test_a_reader_that_comes_back_gets_its_own_at_once(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """Killed after the commit and before XACK, or before the commit: under its name it finds both, and repeats none."""
    held(bus, redis, 3, wait_until)
    bus.consumer("role", "ear", "dead", writes_down).start()
    wait_until(lambda: len(noted(bus)) == 3, "three events")
    redis.execute_command("XGROUP", "SETID", STREAM, "role", "0")  # they come again, as after a lost XACK
    bus.publish(said(3))
    wait_until(lambda: len(noted(bus)) == 4, "the fourth")
    wait_until(lambda: redis.xpending(STREAM, "role")["pending"] == 0, "all acknowledged")
    assert noted(bus) == ["0", "1", "2", "3"]


def test_what_kills_its_reader_ends_as_a_dead_letter_and_takes_nobody_along(
    make_bus: MakeBus, redis: Any, wait_until: WaitUntil
) -> None:
    """A poison event is given up after so many deaths; the events that were read with it are handled."""
    bus = make_bus()
    bus.start()
    bus.register("role", ["ear"])
    bus.publish_all([said(x, session=x) for x in ("a", "poison", "b")])

    class Killed(BaseException):
        """What kill -9 is to a process, this is to the loop: nothing below it gets to clean up."""

    def dies(delivery: Delivery) -> None:
        if delivery.event.payload == "poison":
            raise Killed
        writes_down(delivery)

    deaths = 0
    while not bus.dead_letters():
        reader = make_bus().consumer("role", "ear", "ear-0", dies)
        try:
            for _ in range(8):
                reader.step(0.05)
        except Killed:
            deaths += 1
        assert deaths < 10
    (letter,) = bus.dead_letters()
    assert (deaths, letter.attempts) == (5, 5)
    assert letter.reason == "its reader died at each of 5 tries"
    assert (noted(bus, "a"), noted(bus, "b")) == (["a"], ["b"])


def test_slow_work_keeps_its_lease(make_bus: MakeBus, redis: Any, wait_until: WaitUntil) -> None:
    """A handler that takes longer than the lease is not disturbed: heartbeats renew it, and count as no delivery."""
    bus = make_bus(settings=replace(QUICK, lease_s=0.3))
    bus.start()
    begun, go = threading.Event(), threading.Event()

    def slow(delivery: Delivery) -> None:
        begun.set()
        go.wait()
        writes_down(delivery)

    bus.consumer("role", "ear", "slow", slow).start()
    bus.publish(said("long"))
    wait_until(begun.is_set, "the slow one")
    other = bus.consumer("role", "ear", "other", writes_down)
    other.start()
    since = redis.xpending_range(STREAM, "role", "-", "+", 1)[0]
    wait_until(lambda: redis.time()[0] - int(since["message_id"].split(b"-")[0]) / 1e3 > 1.5, "several leases")
    (pending,) = redis.xpending_range(STREAM, "role", "-", "+", 1)
    assert (pending["consumer"], pending["times_delivered"]) == (b"slow", 1)
    assert pending["time_since_delivered"] < 300
    go.set()
    wait_until(lambda: noted(bus) == ["long"], "its end")
    assert other.counts["handled"] == 0


def zombie(bus: EventBus, wait_until: WaitUntil) -> tuple[Any, Any]:
    """An owner that counts in its memory is stopped in mid-work, another takes over, and the first one wakes up."""
    stopped, go = threading.Event(), threading.Event()
    memory = {"old": 0, "new": 0}

    def counting(who: str) -> Any:
        def count(delivery: Delivery) -> None:
            if not memory[who]:
                found = bus.state("ear", delivery.session)
                memory[who] = found.state if found else 0
            memory[who] += 1
            if who == "old" and memory[who] == 6:
                stopped.set()
                go.wait()
            delivery.keep(memory[who])

        return count

    old = bus.consumer("role", "ear", "ear-0", counting("old"), Reading(owner=bus.own("ear")))
    bus.publish_all([said(n) for n in range(5)])
    old.start()
    wait_until(lambda: memory["old"] == 5, "the first five")
    bus.publish_all([said(n) for n in range(5, 10)])
    wait_until(stopped.is_set, "the sixth")
    old._intake.renew = lambda ids: 0  # a stopped process has no heartbeat
    new = bus.consumer("role", "ear", "ear-1", counting("new"), Reading(owner=bus.own("ear")))
    new.start()
    wait_until(lambda: memory["new"] == 10, "the new owner's work")
    go.set()
    wait_until(lambda: old.failure or old.counts["clashes"], "the zombie's next commit")
    return old, new


def test_a_zombie_that_wakes_up_changes_nothing(bus: EventBus, wait_until: WaitUntil) -> None:
    """Stopped past its lease and owned by another: its state in memory is stale, and must not be committed."""
    old, new = zombie(bus, wait_until)
    wait_until(lambda: old.failure, "the fence")
    bus.publish_all([said(n) for n in range(10, 15)])
    wait_until(lambda: new.counts["handled"] == 10, "the rest")
    assert bus.state("ear", "s1").state == 15


def test_without_the_fence_the_zombie_spoils_the_state(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """The same play with fencing off: the zombie reads on, and writes what it remembers."""
    bus = make_bus(settings=replace(QUICK, safety=Safety(fencing=False)))
    bus.start()
    old, new = zombie(bus, wait_until)
    new.stop()
    bus.publish_all([said(n) for n in range(10, 15)])
    wait_until(lambda: bus.state("ear", "s1").revision == 15, "the rest")
    assert old.failure is None
    assert bus.state("ear", "s1").state != 15


def test_a_redis_that_is_away_stops_nobody_for_good(tmp_path: Path, wait_until: WaitUntil) -> None:
    """kill -9 of Redis while events are published and handled: what was accepted is handled, once, in order."""
    with serve(tmp_path / "redis") as server:
        bus = EventBus(
            server.reference, f"sqlite:///{tmp_path}/s.db", team="shop", roles=("ear", "caller"), settings=QUICK
        )
        bus.start()
        bus.consumer("role", "ear", "ear-0", writes_down).start()
        for n in range(60):
            bus.publish(said(n))
            if n in (20, 40):
                wait_until(lambda: answers(server), "the server")
                os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: len(noted(bus)) >= 60, "all events")
        heard = noted(bus)
        bus.stop()
        assert heard == [str(n) for n in range(60)]


def answers(server: EmbeddedRedis) -> bool:
    try:
        return server.pid > 0
    except RedisError:
        return False


@pytest.mark.parametrize("command", [("XGROUP", "DELCONSUMER", STREAM, "role", "ear-0"), ("XACK", STREAM, "role", "*")])
def test_an_event_that_was_acknowledged_without_its_commit_comes_again(
    bus: EventBus, redis: Any, wait_until: WaitUntil, command: tuple[str, ...]
) -> None:
    """What Redis believes to be done and the store does not is found, and sent again."""
    held(bus, redis, 2, wait_until)
    if command[0] == "XACK":
        redis.xack(STREAM, "role", *(e for e, _ in redis.xrange(STREAM)))
    else:
        redis.execute_command("XGROUP", "DELCONSUMER", STREAM, "role", "dead")
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: noted(bus) == ["0", "1"], "both events")
