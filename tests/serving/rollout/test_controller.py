"""The loop that steers: on a real store, real versions, killed and doubled at the worst moments."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.records import Record
from runtime.store import Store
from serving.rollout.controller import BY, Controller
from serving.rollout.feedback import Accepting, Said, submit
from serving.rollout.kept import LEASE_S, NotTheJudge, docket
from serving.rollout.plan import Plan, RewardRule
from serving.rollout.settling import Over, settle
from serving.rollout.settling import Versions as About
from serving.tables import open_serving_store
from serving.versions import Versions, ledger
from tests.conftest import WaitUntil
from tests.serving.rollout.sessions import TEAM, played, records

PLAN = Plan(steps=(0.5, 1.0), minimum_sessions=60, watch=("reward", "errors"))
START = 1_000.0


class Clock:
    """Time that stands until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> float:
        return self.time


def no_redis() -> Any:
    raise OSError("there is none in this test: ratios hold in the store")


class House:
    """A store with two versions that are ready, v1 current and v2 with half of the new sessions."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.store = open_serving_store(f"sqlite:///{path}")
        self.versions = Versions(self.store, {TEAM: None}, no_redis, self.clock)  # type: ignore[dict-item]
        for content in ("first", "second"):
            self.store.write(lambda c, content=content: self._ready(c, content))
        self.versions.promote(TEAM, "v1", by="test", why="begin")
        self.versions.canary(TEAM, "v2", 0.5, by="test", why="try it")
        self.count = 0

    @staticmethod
    def _ready(connection: Any, content: str) -> None:
        alias, _ = ledger.register(connection, TEAM, content, {}, START)
        ledger.move(connection, ledger.version(connection, TEAM, alias), "deploying")
        ledger.move(connection, ledger.version(connection, TEAM, alias), "ready")

    def controller(self, plan: Plan = PLAN, steering: Any = None) -> Controller:
        return Controller(self.store, TEAM, plan, steering or self.versions, clock=self.clock)

    def play(self, version: str, reward: float | None, **fields: Any) -> str:
        """A session, its end, and what is said of it."""
        self.count += 1
        self.clock.time += 1
        made: Sequence[Record] = records(f"s{self.count}", at=self.clock.time, **fields)
        session = played(self.store, version, made)
        if reward is not None:
            said = Said(session=session, value=reward, key=session)
            submit(self.store, TEAM, said, Accepting(rule=RewardRule()), self.clock.time)
        return session

    def play_many(self, pairs: int, better: float = 0.0, **fields: Any) -> None:
        for place in range(pairs):
            noise = float(place % 5) - 2
            self.play("v1", noise)
            self.play("v2", noise + better, **fields)

    def changes(self, action: str) -> list[ledger.Change]:
        return [c for c in self.versions.history(TEAM) if c.action == action and c.by == BY]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "store.db")
    made.controller()  # makes the tables
    yield made
    made.store.close()


def test_a_worse_version_is_rolled_back_with_the_reason_in_the_history(house: House) -> None:
    """By whom and why, in figures; it gets no new sessions any more, and the trial is over."""
    controller = house.controller()
    controller.look()
    house.play_many(60, better=-3.0)
    decisions = controller.look()
    assert decisions["v2"].action == "rollback"
    (change,) = house.changes("rollback")
    assert change.version == "v2"
    assert "certainly worse" in change.why
    assert house.versions.ratios(TEAM) == {}
    assert controller.look() == {}


def test_a_version_that_is_as_good_goes_on_and_is_promoted(house: House) -> None:
    """After enough sessions, once."""
    controller = house.controller(PLAN.model_copy(update={"steps": (0.5, 0.8, 1.0)}))
    controller.look()
    house.play_many(60, better=1.0)
    assert controller.look()["v2"].action == "step"
    assert house.versions.ratios(TEAM) == {"v2": 0.8}
    house.play_many(59, better=1.0)
    assert controller.look()["v2"].why.startswith("v2 has 59 judged sessions at 80% of the 60")
    house.play_many(120, better=1.0)
    assert controller.look()["v2"].action == "promote"
    assert house.versions.current(TEAM) == "v2"
    assert len(house.changes("canary")) == len(house.changes("promote")) == 1


def test_no_data_is_no_reason(house: House) -> None:
    """Sessions without a reward say nothing about rewards: the version stays where it is, and the reason is told."""
    controller = house.controller()
    controller.look()
    for _ in range(100):
        house.play("v1", 1.0)
        house.play("v2", None)
    decision = controller.look()["v2"]
    assert decision.action == "hold"
    assert "nothing is known of v2's reward" in decision.why
    trial = house.store.read(lambda c: docket(c, TEAM)).trials["v2"]
    assert (trial.counts["canary"].judged, trial.counts["canary"].rewarded) == (100, 0)


def test_degraded_sessions_and_older_ones_are_left_out(house: House) -> None:
    """A fallback's answers say nothing about the version, nor do sessions from before the trial."""
    house.play_many(40, better=-5.0)
    controller = house.controller()
    house.clock.time += 1
    controller.look()
    house.play_many(40, better=-5.0, degraded=True)
    assert controller.look()["v2"].action == "hold"
    trial = house.store.read(lambda c: docket(c, TEAM)).trials["v2"]
    assert (trial.counts["canary"].judged, trial.counts["canary"].degraded) == (0, 40)


def test_a_reward_that_comes_before_or_long_after_the_end_counts_once(house: House) -> None:
    """It waits for its session's outcome, and its session for it."""
    controller = house.controller()
    controller.look()
    late = house.play("v2", None)
    controller.look()
    house.clock.time += 100_000
    submit(house.store, TEAM, Said(session=late, value=1.0, key="late"), Accepting(rule=RewardRule()), house.clock.time)
    for _ in range(3):
        controller.look()
    counts = house.store.read(lambda c: docket(c, TEAM)).trials["v2"].counts["canary"]
    assert (counts.judged, counts.rewarded) == (1, 1)


def test_another_process_that_judges_meanwhile_is_left_alone(house: House) -> None:
    """One at a time; when the first has said nothing for long enough, the second goes on where it was."""
    first, second = house.controller(), house.controller()
    first.look()
    with pytest.raises(NotTheJudge):
        second.look()
    house.play_many(60, better=-3.0)
    house.clock.time += LEASE_S + 1
    assert second.look()["v2"].action == "rollback"
    with pytest.raises(NotTheJudge):
        first.look()
    assert len(house.changes("rollback")) == 1


class Dies:
    """A steering that is killed before, or right after, it has moved traffic."""

    def __init__(self, inner: Versions, *, after: bool) -> None:
        self.inner, self.after = inner, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def canary(self, *args: Any, **named: Any) -> None:
        if self.after:
            self.inner.canary(*args, **named)
        raise KeyboardInterrupt

    promote = rollback = canary


@pytest.mark.parametrize("after", [False, True])
def test_what_was_decided_is_done_once_whoever_is_killed(house: House, *, after: bool) -> None:
    """Before or after traffic has moved: who comes next does it, or sees that it is done."""
    plan = PLAN.model_copy(update={"steps": (0.5, 0.8, 1.0)})
    first = house.controller(plan, Dies(house.versions, after=after))
    first.look()
    house.play_many(60, better=1.0)
    with pytest.raises(KeyboardInterrupt):
        first.look()
    house.clock.time += LEASE_S + 1
    house.controller(plan).look()
    assert house.versions.ratios(TEAM) == {"v2": 0.8}
    assert len(house.changes("canary")) == 1
    assert house.store.read(lambda c: docket(c, TEAM)).trials["v2"].at_step == 0


def test_whoever_steers_by_hand_is_followed(house: House) -> None:
    """A share that is changed begins a step anew; one that is taken away ends the trial."""
    controller = house.controller()
    controller.look()
    house.play_many(10)
    controller.look()
    house.versions.canary(TEAM, "v2", 0.3, by="ann", why="slower")
    controller.look()
    trial = house.store.read(lambda c: docket(c, TEAM)).trials["v2"]
    assert (trial.ratio, trial.at_step, trial.counts["canary"].judged) == (0.3, 0, 10)
    house.versions.canary(TEAM, "v2", 0.0, by="ann", why="stop")
    assert controller.look() == {}
    assert house.store.read(lambda c: docket(c, TEAM)).trials == {}


def test_what_versions_refuse_is_judged_again(house: House) -> None:
    """A step that is refused, since the version is just not ready, is not taken and does not end the trial."""
    plan = PLAN.model_copy(update={"steps": (0.5, 0.8, 1.0)})
    controller = house.controller(plan)
    controller.look()
    house.play_many(60, better=1.0)
    house.store.write(lambda c: ledger.move(c, ledger.version(c, TEAM, "v2"), "deploying"))
    controller.look()
    assert house.versions.ratios(TEAM) == {"v2": 0.5}
    house.store.write(lambda c: ledger.move(c, ledger.version(c, TEAM, "v2"), "ready"))
    controller.look()
    assert house.versions.ratios(TEAM) == {"v2": 0.8}


def test_a_session_is_settled_once_by_whoever_comes_first(house: House) -> None:
    """The router when it ends, or the sweep afterwards; an error that left no record counts too."""
    controller = house.controller()
    controller.look()
    session = played(house.store, "v2", records("x", at=house.clock.time + 1, paid=[("cost", -2.0)]))
    over = Over(session=session, version="v2", terms=("cost",), failed=True)
    assert house.store.write(lambda c: settle(c, TEAM, over, 1.0))
    assert not house.store.write(lambda c: settle(c, TEAM, over, 2.0))
    controller.look()
    errors = house.store.read(lambda c: docket(c, TEAM)).trials["v2"].comparisons["errors"]
    assert (errors.canary.count, errors.canary.total) == (1, 1.0)


def test_rewards_of_the_teams_own_terms_judge_where_the_plan_says_so(house: House) -> None:
    """Without any feedback: the terms that need no truth, as they were paid live."""
    plan = Plan(steps=(0.5, 1.0), minimum_sessions=60, watch=("reward",), reward=RewardRule(source="terms"))
    about = About(terms=lambda _: {"cost"})
    controller = Controller(house.store, TEAM, plan, house.versions, about, house.clock)
    controller.look()
    for place in range(60):
        for version, pay in (("v1", 0.0), ("v2", -3.0)):
            house.play(version, None, paid=[("cost", float(place % 5) + pay), ("right", None)])
    assert controller.look()["v2"].action == "rollback"


LOOP = """
import sys, threading
from serving.rollout.controller import Controller
from serving.rollout.plan import Plan
from serving.tables import open_serving_store
from serving.versions import Versions
def no_redis(): raise OSError
store = open_serving_store(f"sqlite:///{sys.argv[1]}")
plan = Plan(steps=(0.5, 1.0), minimum_sessions=60, watch=("reward", "errors"), every_s=0.05)
Controller(store, "desk", plan, Versions(store, {"desk": None}, no_redis)).run(threading.Event())
"""


def test_a_loop_that_is_killed_is_gone_on_with(house: House, tmp_path: Path, wait_until: WaitUntil) -> None:
    """A real process, killed while it counts: no session is counted twice, none is lost."""
    house.clock.time = 0.0
    judge = subprocess.Popen([sys.executable, "-c", LOOP, str(tmp_path / "store.db")])
    try:
        wait_until(lambda: house.store.read(lambda c: docket(c, TEAM)).trials, "the trial to begin")
        house.clock.time = 4e9
        for _ in range(30):
            house.play("v1", 1.0)
            house.play("v2", None)
        wait_until(lambda: counted(house.store) > 5, "some to be counted")
    finally:
        judge.kill()
        judge.wait()
    house.clock.time += LEASE_S + 1e9
    house.controller().look()
    assert counted(house.store) == 30


def counted(store: Store) -> int:
    trials = store.read(lambda c: docket(c, TEAM)).trials
    return trials["v2"].counts["canary"].judged if "v2" in trials else 0


def test_a_round_that_fails_does_not_end_the_loop(
    house: House, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told in the log and tried again."""
    plan = PLAN.model_copy(update={"every_s": 0.01})
    controller, stop, fails = house.controller(plan), threading.Event(), iter([RuntimeError("boom")])
    looked: list[int] = []

    def look() -> None:
        looked.append(1)
        for fault in fails:
            raise fault

    controller.look = look  # type: ignore[method-assign]
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    wait_until(lambda: len(looked) > 2, "rounds after the one that failed")
    stop.set()
    thread.join()
    assert "boom" in caplog.text
