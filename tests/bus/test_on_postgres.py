"""The same promises with PostgreSQL as the store."""

from dataclasses import replace

import pytest

from runtime.bus import Delivery, Fenced
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

pytestmark = pytest.mark.slow


def test_order_state_and_once_with_several_readers(
    make_bus: MakeBus, empty_postgres: str, wait_until: WaitUntil
) -> None:
    """Three readers on connections of their own: no event twice, none out of order, no update of a state lost."""
    buses = [make_bus(store=empty_postgres) for _ in range(3)]

    def handle(delivery: Delivery) -> None:
        delivery.keep((delivery.state() or 0) + 1)
        writes_down(delivery)

    for i, each in enumerate(buses):
        each.start()
        each.consumer("role", "ear", f"ear-{i}", handle).start()
    for n in range(30):
        buses[n % 3].publish_all([said(n, session=f"s{k}") for k in range(4)])
    for k in range(4):
        wait_until(lambda k=k: len(noted(buses[0], f"s{k}")) >= 30, "all events of a session", 60)
        assert noted(buses[0], f"s{k}") == [str(n) for n in range(30)]
        assert buses[0].state("ear", f"s{k}").state == 30


def test_dead_letters_timers_and_fences(make_bus: MakeBus, empty_postgres: str, wait_until: WaitUntil) -> None:
    """Given up, replayed, scheduled, fenced: as on SQLite."""
    bus = make_bus(store=empty_postgres, settings=replace(QUICK, max_attempts=2))
    bus.start()
    ill = [True]

    def handle(delivery: Delivery) -> None:
        if ill:
            raise ValueError("ill")
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", handle).start()
    event = bus.publish(said("pill"))
    wait_until(bus.dead_letters, "the dead letter")
    ill.clear()
    bus.replay(event.event_id)
    bus.schedule(said("later"), due=0.0)
    wait_until(lambda: sorted(noted(bus)) == ["later", "pill"], "both")
    old = bus.own("ear")
    bus.own("ear")
    with pytest.raises(Fenced):
        bus.publish(said("late"), owner=old)
    assert bus.stats()["wal_bytes"] == 0
