"""Agents that live on the bus: real Valkey, real store, in this process and as Ray actors."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.actor import AgentActor, AgentSpec, BusSpec, Fault
from runtime.actor.attendant import Attendant
from runtime.bus import BusSettings, Event, EventBus
from runtime.embedded import EmbeddedRedis, serve
from runtime.records import StateChanged
from runtime.store import history
from tests.actor.behaviours import Counter, tell
from tests.conftest import WaitUntil

QUICK = BusSettings(lease_s=1.0, retry_s=0.01, keep_s=0.05, straggler_s=0.3, verify_s=0.5, park_s=0.5)
ROLES = ("clerk", "boss")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with serve(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def spec(server: EmbeddedRedis, tmp_path: Path) -> AgentSpec:
    at = BusSpec(redis=server.reference, roles=ROLES, settings=QUICK)
    return AgentSpec(
        team=f"shop-{tmp_path.name}", role="clerk", make=Counter, store=f"sqlite:///{tmp_path}/store.db", bus=at
    )


@pytest.fixture
def bus(spec: AgentSpec, server: EmbeddedRedis) -> Iterator[EventBus]:
    made = EventBus(server.reference, spec.store, team=spec.team, roles=ROLES, settings=QUICK)
    made.register("role")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def attend() -> Iterator[Callable[[AgentSpec], Attendant]]:
    made: list[Attendant] = []

    def begin(spec: AgentSpec) -> Attendant:
        assert spec.bus is not None
        made.append(Attendant(spec, spec.bus))
        return made[-1]

    yield begin
    for agent in made:
        agent.stop()


def count(bus: EventBus, session: str = "s", role: str = "clerk") -> int:
    found = bus.state(role, session)
    return found.state["state"]["count"] if found else 0


def test_events_come_and_go(spec: AgentSpec, bus: EventBus, attend: Any, wait_until: WaitUntil) -> None:
    """An event is dealt with, its state committed, and what it sends reaches the other role; each in its session."""
    attend(spec)
    attend(replace(spec, role="boss"))
    for session in ("s", "t"):
        bus.publish(tell(3, session=session, send="boss"))
    wait_until(lambda: [count(bus, s, "boss") for s in ("s", "t")] == [3, 3], "both sessions at the boss")
    assert [count(bus, s) for s in ("s", "t")] == [3, 3]


def test_its_life_is_in_the_history(spec: AgentSpec, bus: EventBus, attend: Any, wait_until: WaitUntil) -> None:
    """An event that fails is tried again; the history shows the agent at work, in error, and at work again."""
    agent = attend(spec)
    bus.publish(tell(1))
    wait_until(lambda: count(bus) == 1, "the first event")
    bus.publish(tell(1, **{"raise": "no"}))
    bus.publish(tell(1))
    wait_until(lambda: len(bus.dead_letters()) == 1, "the one that cannot be dealt with, given up")
    wait_until(lambda: count(bus) == 2, "the others")
    assert "ValueError: no" in bus.dead_letters()[0].reason
    assert bus.store is not None
    records = bus.store.read(lambda c: history.of_session(c, spec.team, "s"))
    changes = [(r.before, r.after) for r in records if isinstance(r, StateChanged)]
    assert changes[:4] == [("idle", "running"), ("running", "idle"), ("idle", "running"), ("running", "error")]
    assert changes[-3:] == [("error", "idle"), ("idle", "running"), ("running", "idle")]
    wait_until(lambda: agent.health().handled == 2, "both to be counted")


def test_one_of_two(spec: AgentSpec, bus: EventBus, attend: Any, wait_until: WaitUntil) -> None:
    """Of two agents in one place the younger works on; the older one is fenced and says so."""
    old = attend(spec)
    bus.publish(tell(1))
    wait_until(lambda: count(bus) == 1, "the first event")
    attend(spec)
    for _ in range(20):
        bus.publish(tell(1))
    wait_until(lambda: count(bus) == 21, "every event once")
    wait_until(lambda: old.health().fenced, "the older one fenced")


def test_what_it_waited_for(spec: AgentSpec, bus: EventBus, attend: Any, wait_until: WaitUntil) -> None:
    """What an agent waits for is taken up by its next process, as an event of the bus."""
    attend(spec)
    bus.publish(tell(1, **{"await": "job-7"}))
    wait_until(lambda: count(bus) == 1, "the event")
    attend(spec)
    wait_until(lambda: count(bus) == 101, "what it had waited for")


@pytest.mark.parametrize("point", ["before_handle", "before_commit"])
def test_killed_over_an_event(
    spec: AgentSpec, bus: EventBus, ray_local: None, tmp_path: Path, wait_until: WaitUntil, point: str
) -> None:
    """Killed in the middle of an event, an agent comes back by itself, and every event has its effect once."""
    actor = AgentActor.start(replace(spec, faults=(Fault(at=point, kind="crash", marker=f"{tmp_path}/once"),)))
    before = actor.health().pid
    for _ in range(10):
        bus.publish(Event(to="clerk", correlation_id="s", payload={"add": 1}))
    wait_until(lambda: count(bus) == 10, "every event once", 60.0)
    after = actor.health(within_s=20.0).pid
    assert after != before
    os.kill(after, signal.SIGKILL)
    bus.publish(tell(1))
    wait_until(lambda: count(bus) == 11, "the event after another kill", 60.0)
    with pytest.raises(TypeError, match="publish the event"):
        actor.tell(tell(1))
    actor.stop()
