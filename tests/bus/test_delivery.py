"""What a handler can rely on: effects once, all or none, in order, tries that are counted."""

from dataclasses import replace

import pytest

from runtime.bus import Delivery, Event, EventBus, Fenced, NoSuchRole, Reading, Safety
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import note, noted, said, writes_down
from tests.conftest import WaitUntil


def test_a_chain_runs_through_the_roles(bus: EventBus, wait_until: WaitUntil) -> None:
    """Each role's state and its outgoing event are committed together; the correlation id and the trace go along."""
    got: list[Event] = []

    def ear(delivery: Delivery) -> None:
        heard = (delivery.state() or 0) + 1
        delivery.keep(heard, schema=3)
        delivery.send("voice", {"heard": heard})

    bus.consumer("role", "ear", "ear-0", ear).start()
    bus.consumer("role", "voice", "voice-0", lambda d: d.send("caller", d.event.payload) and None).start()
    bus.consumer("role", "caller", "caller-0", lambda d: got.append(d.event)).start()
    for i in range(5):
        bus.publish(said(i, traceparent="00-a-b-01"))
    wait_until(lambda: len(got) >= 5, "five answers")
    assert [(e.payload, e.seq, e.sender, e.correlation_id) for e in got] == [
        ({"heard": n}, n, "voice", "s1") for n in range(1, 6)
    ]
    assert {e.traceparent for e in got} == {"00-a-b-01"}
    kept = bus.state("ear", "s1")
    assert kept
    assert (kept.state, kept.schema, kept.revision) == (5, 3, 5)


def test_groups_are_purposes_and_each_gets_everything(bus: EventBus, wait_until: WaitUntil) -> None:
    """A recorder reads along without taking anything from the role, and its state is its own."""

    def along(delivery: Delivery) -> None:
        writes_down(delivery)
        delivery.keep(delivery.group)

    for group in ("role", "recorder"):
        bus.consumer(group, "ear", f"{group}-0", along).start()
    bus.publish(said("hello"))
    wait_until(lambda: noted(bus) == ["hello", "hello"], "both groups")
    assert [bus.state(r, "s1").state for r in ("ear", "ear/recorder")] == ["role", "recorder"]


def test_a_group_gets_what_was_published_before_it_read(bus: EventBus, wait_until: WaitUntil) -> None:
    """A registered group's events wait for it, however late it comes."""
    bus.register("role", ["ear"])
    bus.publish(said("early"))
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: noted(bus) == ["early"], "the early event")


def test_two_streams_entries_of_one_event_have_one_effect(bus: EventBus, redis: object, wait_until: WaitUntil) -> None:
    """Whoever sends an event twice, for a lost answer, does no harm."""
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    event = bus.publish(said("once"))
    wait_until(lambda: noted(bus) == ["once"], "the first entry")
    for _ in range(3):
        redis.xadd("agent_events:shop:ear", {**event.fields(), "seq": "1"})
    bus.publish(said("next"))
    wait_until(lambda: noted(bus) == ["once", "next"], "the next event")


def test_an_event_that_is_twice_in_one_batch_is_handled(bus: EventBus, redis: object, wait_until: WaitUntil) -> None:
    """The second entry must not be taken for a sign that the first was committed."""
    bus.register("role", ["ear"])
    bus.publish_all([said(n) for n in range(5)])
    wait_until(lambda: redis.xlen("agent_events:shop:ear") == 5, "the events")
    for _, fields in redis.xrange("agent_events:shop:ear"):
        redis.xadd("agent_events:shop:ear", fields)
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    wait_until(lambda: redis.xpending("agent_events:shop:ear", "role")["pending"] == 0 and len(noted(bus)) > 4, "all")
    assert noted(bus) == [str(n) for n in range(5)]


def test_a_handler_that_raises_leaves_nothing_and_is_tried_again(bus: EventBus, wait_until: WaitUntil) -> None:
    """What it had put into the delivery is void; the try after it says that it is one."""
    tries: list[int] = []

    def third_time(delivery: Delivery) -> None:
        tries.append(delivery.attempt)
        delivery.keep(delivery.attempt)
        writes_down(delivery)
        if delivery.attempt < 3:
            raise ValueError("not yet")

    bus.consumer("role", "ear", "ear-0", third_time).start()
    bus.publish(said("stubborn"))
    wait_until(lambda: noted(bus) == ["stubborn"], "the third try")
    assert tries == [1, 2, 3]
    assert bus.state("ear", "s1").revision == 1


def test_what_fails_every_time_becomes_a_dead_letter_and_its_line_goes_on(bus: EventBus, wait_until: WaitUntil) -> None:
    """After as many tries as are allowed, with the reason; the events behind it are handled."""

    def picky(delivery: Delivery) -> None:
        if delivery.event.payload == "poison":
            raise KeyError("the antidote")
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", picky).start()
    bus.publish_all([said(x) for x in ("before", "poison", "after")])
    wait_until(lambda: noted(bus) == ["before", "after"], "the events around it")
    (letter,) = bus.dead_letters()
    assert (letter.reason, letter.attempts, letter.group) == ("KeyError: 'the antidote'", 5, "role")
    assert letter.fields["payload"] == '"poison"'


def test_a_replayed_dead_letter_is_handled_by_the_group_that_had_given_it_up(
    bus: EventBus, wait_until: WaitUntil
) -> None:
    """With all its tries, by that group only, and it is a dead letter no more."""
    healed: list[int] = []

    def picky(delivery: Delivery) -> None:
        if not healed:
            raise ValueError("ill")
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", picky).start()
    bus.consumer("recorder", "ear", "recorder-0", lambda d: d.record(note(d, "recorded"))).start()
    event = bus.publish(said("medicine"))
    wait_until(bus.dead_letters, "the dead letter")
    healed.append(1)
    assert bus.replay(event.event_id) == 1
    wait_until(lambda: "medicine" in noted(bus), "the replay")
    assert sorted(noted(bus)) == ["medicine", "recorded"]
    assert bus.dead_letters() == []
    assert bus.stats()["dead_letters"] == 0


def test_an_event_for_nobody_is_refused(bus: EventBus, wait_until: WaitUntil) -> None:
    """At publishing at once; from a handler, the event handled becomes a dead letter without further tries."""
    with pytest.raises(NoSuchRole, match=r"team shop has no role 'nose'; it has ear, voice, caller"):
        bus.publish(said(1, to="nose"))
    tries: list[int] = []

    def sneezes(delivery: Delivery) -> None:
        tries.append(delivery.attempt)
        delivery.send("nose", 1)

    bus.consumer("role", "ear", "ear-0", sneezes).start()
    bus.publish(said(2))
    wait_until(bus.dead_letters, "the dead letter")
    assert (tries, bus.dead_letters()[0].reason) == ([1], "team shop has no role 'nose'; it has ear, voice, caller")


def test_outgoing_ids_and_the_idempotency_key_are_the_same_at_every_try(bus: EventBus, wait_until: WaitUntil) -> None:
    """Outside effects can tell that they have been had, and an event sent twice is the same one."""
    seen: list[tuple[str, str, str]] = []

    def twice(delivery: Delivery) -> None:
        seen.append((delivery.key, delivery.send("voice", 1).event_id, delivery.send("voice", 2).event_id))
        if len(seen) == 1:
            raise ValueError("again")

    bus.consumer("role", "ear", "ear-0", twice).start()
    bus.publish(said("x"))
    wait_until(lambda: len(seen) == 2, "the second try")
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 3


def test_a_state_that_another_reader_changed_is_read_again(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """Several readers of one group without an owner: no update of a state is lost."""
    buses = [make_bus() for _ in range(3)]
    for i, each in enumerate(buses):
        each.start()
        each.consumer("role", "ear", f"ear-{i}", lambda d: d.keep((d.state() or 0) + 1)).start()
    for i in range(60):
        buses[0].publish(Event(to="ear", sender="caller" if i % 2 else "voice", correlation_id="s1", payload=i))
    wait_until(lambda: (buses[0].state("ear", "s1") or 0) and buses[0].state("ear", "s1").state == 60, "60 counts")


def test_order_holds_with_several_readers(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """In each session what one role says to another is handled in the order of its publishing."""
    buses = [make_bus() for _ in range(3)]
    for i, each in enumerate(buses):
        each.start()
        each.consumer("role", "ear", f"ear-{i}", writes_down).start()
    for n in range(30):
        buses[n % 3].publish_all([said(n, session=f"s{k}") for k in range(4)])
    for k in range(4):
        wait_until(lambda k=k: len(noted(buses[0], f"s{k}")) == 30, "all events of a session")
        assert noted(buses[0], f"s{k}") == [str(n) for n in range(30)]


def test_an_earlier_owner_is_fenced(bus: EventBus, wait_until: WaitUntil) -> None:
    """Once a role has a new owner, the old one neither commits nor publishes, whatever it still had in hand."""
    old = bus.own("ear")
    taken = bus.own("ear")
    with pytest.raises(Fenced, match=r"shop/ear/0 is owned by epoch 2; epoch 1 may not write any more"):
        bus.publish(said("late", to="voice"), state="stale", owner=old)
    zombie = bus.consumer("role", "ear", "old", lambda d: d.keep("stale"), Reading(owner=old))
    bus.publish(said("now"))
    zombie.start()
    wait_until(lambda: zombie.failure, "the end of the old owner's reader")
    assert isinstance(zombie.failure, Fenced)
    assert bus.state("ear", "s1") is None
    bus.consumer("role", "ear", "old", lambda d: d.keep("fresh"), Reading(owner=taken)).start()
    wait_until(lambda: bus.state("ear", "s1"), "the owner's commit")
    assert (bus.state("ear", "s1").state, bus.state("ear", "s1").epoch) == ("fresh", 2)


def test_without_fencing_the_stale_state_stands(make_bus: MakeBus) -> None:
    """The fence is needed: without it the same zombie overwrites what the new owner knows."""
    bus = make_bus(settings=replace(QUICK, safety=Safety(fencing=False)))
    bus.start()
    old = bus.own("ear")
    bus.publish(Event(to="voice", sender="ear", correlation_id="s1", payload=1), state="fresh", owner=bus.own("ear"))
    bus.publish(Event(to="voice", sender="ear", correlation_id="s1", payload=1), state="stale", owner=old)
    assert bus.state("ear", "s1").state == "stale"


def test_nothing_but_redis_is_faster_and_promises_less(make_bus: MakeBus, wait_until: WaitUntil) -> None:
    """Without a store events are delivered at least once, and there is no state."""
    bus = make_bus(store=None)
    bus.start()
    got: list[object] = []
    bus.consumer("role", "ear", "ear-0", lambda d: got.append(d.event.payload)).start()
    bus.publish_all([said(n) for n in range(10)])
    wait_until(lambda: len(got) == 10, "ten events")
    assert got == [*range(10)]
    with pytest.raises(ValueError, match="no store"):
        bus.publish(said(1), state=1)
