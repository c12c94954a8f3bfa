"""Events for later: they wait in the store, survive restarts, come once or again and again, and can be taken back."""

from dataclasses import replace

from runtime.bus import BusSettings, Delivery, EventBus
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        from runtime.seams import now

        self.ahead, self._now = 0.0, now

    def __call__(self) -> float:
        return self._now() + self.ahead


def at(clock: Clock) -> BusSettings:
    return replace(QUICK, now=clock)


def read(bus: EventBus) -> None:
    bus.consumer("role", "ear", "ear-0", writes_down).start()


def test_an_event_comes_when_it_is_due_and_not_before(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """Also when the bus that scheduled it is gone by then."""
    clock = Clock()
    first = make_bus(settings=at(clock))
    first.schedule(said("later"), due=clock() + 5, key="wake")
    first.schedule(said("much later"), due=clock() + 5_000)
    first.stop()
    second = make_bus(settings=at(clock))
    second.start()
    read(second)
    second.publish(said("now"))
    wait_until(lambda: noted(second) == ["now"], "the event that does not wait")
    clock.ahead = 6
    wait_until(lambda: noted(second) == ["now", "later"], "the event that is due")
    assert second.stats()["scheduled"] == 1


def test_one_that_comes_again_leaves_out_what_was_missed(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """A nightly refresh after three days of standstill comes once, then the next night; each is an event of its own."""
    clock = Clock()
    bus = make_bus(settings=at(clock))
    bus.start()
    read(bus)
    day = 86_400.0
    bus.schedule(said("refresh", session=""), due=clock() - 1, every_s=day, key="nightly")
    wait_until(lambda: bus.store.read(refreshes) == 1, "the first night")
    clock.ahead = 3.5 * day
    wait_until(lambda: bus.store.read(refreshes) == 2, "one for three nights")
    clock.ahead = 4.1 * day
    wait_until(lambda: bus.store.read(refreshes) == 3, "the next night")
    assert bus.cancel("nightly")
    assert not bus.cancel("nightly")


def refreshes(connection: object) -> int:
    return connection.exec_driver_sql("SELECT count(*) FROM history").scalar_one()


def test_a_fallback_is_taken_back_by_the_answer(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """A handler asks and schedules a fallback; whoever gets the answer in time cancels it; each in its transaction."""
    clock = Clock()
    bus = make_bus(settings=at(clock))
    bus.start()

    def ear(delivery: Delivery) -> None:
        what = delivery.event.payload
        if what == "ask":
            delivery.send_later("ear", "fallback", delay_s=60, key=f"fallback-{delivery.session}")
        elif what == "answer":
            delivery.cancel(f"fallback-{delivery.session}")
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", ear).start()
    for session, words in (("quick", ("ask", "answer")), ("slow", ("ask",))):
        for word in words:
            bus.publish(said(word, session=session))
    wait_until(lambda: noted(bus, "quick") == ["ask", "answer"] and noted(bus, "slow") == ["ask"], "the questions")
    clock.ahead = 61
    wait_until(lambda: noted(bus, "slow") == ["ask", "fallback"], "the fallback")
    bus.publish(said("end", session="quick"))
    wait_until(lambda: noted(bus, "quick") == ["ask", "answer", "end"], "the end, and no fallback")


def test_a_handler_that_fails_schedules_nothing(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """What is scheduled is committed with the event, or not at all."""
    bus = make_bus()
    bus.start()

    def fails(delivery: Delivery) -> None:
        delivery.send_later("ear", "never", delay_s=0)
        raise ValueError("no")

    bus.consumer("role", "ear", "ear-0", fails).start()
    bus.publish(said("x"))
    wait_until(bus.dead_letters, "the dead letter")
    assert bus.stats()["scheduled"] == 0
