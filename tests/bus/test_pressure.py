"""When readers do not keep up: publishers wait, then they are refused with an error that says so; and the numbers."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from runtime.bus import Overloaded
from runtime.bus.__main__ import main
from runtime.embedded import EmbeddedRedis
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

STREAM = "agent_events:shop:ear"
TIGHT = replace(QUICK, depth_limit=20, block_s=0.3)


def test_a_publisher_is_refused_when_readers_stay_behind(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """What was accepted before is still handled; what was refused never is."""
    bus = make_bus(settings=TIGHT)
    bus.start()
    bus.register("role", ["ear"])
    bus.publish_all([said(n) for n in range(21)])
    wait_until(lambda: bus.stats()["depth"][STREAM] == 21, "the backlog")
    with pytest.raises(
        Overloaded, match=r"team shop is 21 events behind \(limit 20\): publish later, or add consumers"
    ):
        bus.publish(said(21))
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: len(noted(bus)) == 21, "the backlog's end")
    wait_until(lambda: bus.stats()["depth"][STREAM] == 0, "room")
    bus.publish(said(22))


def test_a_publisher_waits_for_room(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """As long as readers get on in time, publishing is slow, and not refused."""
    bus = make_bus(settings=replace(TIGHT, block_s=30.0))
    bus.start()
    bus.register("role", ["ear"])
    bus.publish_all([said(n) for n in range(21)])
    wait_until(lambda: bus.stats()["depth"][STREAM] == 21, "the backlog")
    late = threading.Thread(target=bus.publish, args=(said(21),))
    late.start()
    assert late.is_alive()
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    late.join(20)
    wait_until(lambda: len(noted(bus)) == 22, "all events")


def test_without_redis_publishing_goes_on_up_to_the_limit(make_bus: MakeBus) -> None:
    """The store takes events that Redis cannot take yet; they count as depth."""
    bus = make_bus(settings=TIGHT)  # never started: nothing is sent
    for n in range(21):
        bus.publish_all([said(n)])
    with pytest.raises(Overloaded, match="21 events behind"):
        bus.publish(said("too much"))


def test_stats_tell_how_the_bus_is_doing(
    make_bus: MakeBus, redis: Any, server: EmbeddedRedis, wait_until: WaitUntil, capsys: pytest.CaptureFixture[str]
) -> None:
    """Depth, pending, oldest pending age, lag, redeliveries, dead letters, log and WAL; the same from the shell."""
    bus = make_bus()
    bus.start()
    bus.register("role", ["ear"])
    bus.publish_all([said(n) for n in range(5)])
    wait_until(lambda: redis.xlen(STREAM) == 5, "the events")
    redis.xreadgroup("role", "other", {STREAM: ">"}, count=2)
    wait_until(lambda: bus.stats()["oldest_pending_s"][STREAM] > 0, "an age")
    wait_until(lambda: bus.stats()["unsent"] == 0, "the outbox to know")
    told = bus.stats()
    assert [told[k][STREAM] for k in ("depth", "pending", "lag", "length")] == [5, 2, 3, 5]
    assert (told["dead_letters"], told["redeliveries"], told["unsent"], told["log_length"]) == (0, 0, 0, 5)
    assert told["wal_bytes"] > 0
    redis.xdel(STREAM, redis.xrange(STREAM)[3][0])
    assert redis.xinfo_groups(STREAM)[0]["lag"] is None
    assert bus.stats()["lag"][STREAM] == 2, "counted, where Redis does not know"
    assert (
        main(["stats", "shop", "--redis", server.reference, "--store", f"sqlite:///{bus.store.engine.url.database}"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["pending"][STREAM] == 2
