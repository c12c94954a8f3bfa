"""An agent in this process, on a real store: what is kept, what is refused, who may write."""

import json
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import text

from runtime.actor import Agent, AgentSpec, DeadlinePassed, Fault, SnapshotRefused
from runtime.errors import Fenced, TeamError, UserCodeError
from runtime.records import AgentStarted, AgentStopped, StateChanged
from runtime.store import Store, history, open_store
from tests.actor.behaviours import Counter, Migrating, Second, tell
from tests.conftest import WaitUntil


@pytest.fixture
def spec(tmp_path: Path) -> AgentSpec:
    return AgentSpec(team="shop", role="clerk", make=Counter, store=f"sqlite:///{tmp_path}/store.db")


def looked(spec: AgentSpec, session: str) -> list[Any]:
    store: Store = open_store(spec.store)
    records = store.read(lambda c: history.of_session(c, spec.team, session))
    store.close()
    return records


def test_state_survives_the_process(spec: AgentSpec) -> None:
    """What an agent knew when it was stopped, or was not even stopped, the next one of that name knows."""
    first = Agent(spec)
    assert [first.tell(tell(2)).value, first.tell(tell(3)).value] == [2, 5]
    second = Agent(spec)  # the first one is not stopped: as after a crash
    assert second.tell(tell(1)).value == 6
    second.stop()
    first.stop()


def test_sessions_do_not_mix(spec: AgentSpec) -> None:
    """Each session has its own state, also where more are open than fit into memory."""
    agent = Agent(replace(spec, store="", make=Counter))
    for n in range(50):
        for _ in range(2):
            agent.tell(tell(n, session=f"s{n}"))
    assert [agent.kept(f"s{n}").state["count"] for n in range(50)] == [2 * n for n in range(50)]


def test_the_same_event_twice(spec: AgentSpec) -> None:
    """An event that comes again is not dealt with again, and has the same answer: also in the next process."""
    first = Agent(spec)
    event = tell(2, event_id="e1", send="boss")
    told, again = first.tell(event), first.tell(event)
    assert (told.value, told.again, again.again) == (2, False, True)
    assert (again.value, again.sends) == (told.value, told.sends)
    second = Agent(spec)
    late = second.tell(event)
    assert (late.value, late.sends, late.again) == (told.value, told.sends, True)
    assert second.kept("s").state == {"count": 2}
    first.stop()
    second.stop()


def test_one_owner(spec: AgentSpec) -> None:
    """Of two agents of one name only the younger writes; the older one's work is void, and it does nothing more."""
    old = Agent(spec)
    old.tell(tell(1))
    young = Agent(spec)
    with pytest.raises(Fenced):
        old.tell(tell(10))
    with pytest.raises(Fenced):
        old.tell(tell(10, session="other"))
    assert old.health().fenced
    assert young.tell(tell(1)).value == 2
    old.stop()
    young.stop()


def test_records(spec: AgentSpec) -> None:
    """Start and end are recorded with the cold-start time, and each event with the agent's changes of state."""
    agent = Agent(spec)
    agent.tell(tell(1))
    agent.tell(tell(1, **{"await": "job"}))
    agent.stop("closing time")
    changes = [(r.before, r.after) for r in looked(spec, "s") if isinstance(r, StateChanged)]
    assert changes == [("idle", "running"), ("running", "idle"), ("idle", "running"), ("running", "waiting")]
    started, stopped = looked(spec, spec.name)
    assert isinstance(started, AgentStarted)
    assert (started.epoch, started.cold_start_ms > 0) == (1, True)
    assert isinstance(stopped, AgentStopped)
    assert stopped.why == "closing time"


def test_what_raises_leaves_nothing(spec: AgentSpec) -> None:
    """A behaviour that raises is named, leaves the state as it was, and the agent in error until the next event."""
    agent = Agent(spec)
    agent.tell(tell(4))
    with pytest.raises(UserCodeError, match="clerk handling event bad: ValueError: no"):
        agent.tell(tell(5, event_id="bad", **{"raise": "no"}))
    assert (agent.kept("s").state, agent.kept("s").life) == ({"count": 4}, "error")
    again = Agent(spec)
    assert again.kept("s").life == "error"
    assert again.tell(tell(1)).value == 5
    changes = [(r.before, r.after) for r in looked(spec, "s") if isinstance(r, StateChanged)]
    assert changes[2:] == [
        ("idle", "running"),
        ("running", "error"),
        ("error", "idle"),
        ("idle", "running"),
        ("running", "idle"),
    ]
    again.stop()
    agent.stop()


def test_too_late_to_begin(spec: AgentSpec) -> None:
    """What comes after its caller has stopped waiting is not begun."""
    agent = Agent(spec)
    with pytest.raises(DeadlinePassed):
        agent.tell(tell(1), until=time.time() - 1)
    assert agent.kept("s").state is None
    agent.stop()


def test_another_form(spec: AgentSpec) -> None:
    """A state of an older form is migrated where the behaviour says how, and refused where not; a newer one always."""
    agent = Agent(spec)
    agent.tell(tell(4))
    agent.stop()
    refusing = Agent(replace(spec, make=Second))
    with pytest.raises(SnapshotRefused, match="schema 1"):
        refusing.tell(tell(1))
    refusing.stop()
    migrating = Agent(replace(spec, make=Migrating))
    assert migrating.tell(tell(1)).value == 5
    migrating.stop()
    older = Agent(spec)
    with pytest.raises(SnapshotRefused, match="newer than this program's 1"):
        older.tell(tell(1))
    older.stop()


def test_a_damaged_state(spec: AgentSpec, tmp_path: Path) -> None:
    """A state that was damaged, on its way or on the disk, is refused and not believed; other sessions go on."""
    agent = Agent(replace(spec, faults=(Fault(at="before_commit", kind="corrupt", marker=f"{tmp_path}/once"),)))
    agent.tell(tell(4))
    agent.tell(tell(4, session="good"))
    agent.stop()
    store = open_store(spec.store)

    def damage(connection: Any) -> None:
        body = json.loads(connection.execute(text("SELECT body FROM snapshots WHERE session = 'good'")).scalar_one())
        body["state"]["count"] = 400
        connection.execute(text("UPDATE snapshots SET body = :b WHERE session = 'good'"), {"b": json.dumps(body)})

    store.write(damage)
    next_one = Agent(spec)
    with pytest.raises(SnapshotRefused, match="damaged"):
        next_one.tell(tell(1))
    with pytest.raises(SnapshotRefused, match="damaged"):
        next_one.tell(tell(1, session="good"))
    assert next_one.tell(tell(1, session="new")).value == 1
    next_one.stop()
    store.close()


def test_what_it_waited_for(spec: AgentSpec) -> None:
    """What an agent waited for is kept with its state, and taken up again by the next process, once."""
    agent = Agent(spec)
    agent.tell(tell(1, **{"await": "job-7"}))
    assert agent.kept("s").awaiting == {"job-7": {"since": 1}}
    for _ in range(2):
        after = Agent(spec)
        assert (after.kept("s").state, after.kept("s").awaiting) == ({"count": 101}, {})
        after.stop()
    agent.stop()


def test_one_at_a_time(spec: AgentSpec, wait_until: WaitUntil) -> None:
    """However many call at once, the state is touched by one call at a time; health answers meanwhile."""
    agent = Agent(replace(spec, store=""))
    callers = [Thread(target=agent.tell, args=(tell(1, sleep=0.02),)) for _ in range(10)]
    for caller in callers:
        caller.start()
    wait_until(lambda: agent.health().busy_s > 0, "the agent at work")
    for caller in callers:
        caller.join()
    assert agent.kept("s").state == {"count": 10}
    assert agent.health().handled == 10


def test_names() -> None:
    """Names are unique for team, version, role and session, whatever characters these have."""
    parts = [
        ("a:b", "c", "d", ""),
        ("a", "b:c", "d", ""),
        ("a", "b", "c", "d"),
        ("a", "b", "c:d", ""),
        ("a", "", "b", "c"),
    ]
    names = {AgentSpec(team=t, version=v, role=r, session=s, make=Counter).name for t, v, r, s in parts}
    assert len(names) == len(parts)


def test_a_reference_to_the_store(spec: AgentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's URL may stand in an environment variable, so that no password is in an argument."""
    monkeypatch.setenv("SHOP_STORE", spec.store)
    agent = Agent(replace(spec, store="env:SHOP_STORE"))
    agent.tell(tell(1))
    agent.stop()
    monkeypatch.delenv("SHOP_STORE")
    with pytest.raises(TeamError, match="SHOP_STORE"):
        Agent(replace(spec, store="env:SHOP_STORE"))


def test_a_point_that_is_not_there() -> None:
    """A fault at a point that does not exist would never happen, and is refused."""
    with pytest.raises(ValueError, match="before_handle"):
        Fault(at="lunch", kind="slow")
