"""A session can be had back from its records, at any point, whatever was decided in it."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.restore import NotItsRecords, restored
from envs.session import Session
from envs.supply_chain import team as supply_chain
from runtime.records import EpisodeEnded
from runtime.tools import tool
from runtime.types import Pipeline, Role, RoundRobin, Scenario, Simultaneous, Team, Turns

TEAM = supply_chain()


def drawn(index: int) -> Scenario:
    assert TEAM.generate is not None
    return TEAM.generate("train", 1, index)


class Counter:
    """A world in which asking again answers something else."""

    def __init__(self) -> None:
        self.asked = 0

    def outcome(self) -> tuple[dict[str, int], bool]:
        return {"asked": self.asked}, True


def ask(world: Counter) -> int:
    """How often it was asked."""
    world.asked += 1
    return world.asked


def stop(world: Counter) -> str:
    """End it."""
    return "done"


def counting(turns: Turns) -> Team:
    return Team(
        name="counting",
        roles=tuple(Role(name=n, brief="", tools=("ask", "stop") if n == "b" else ("ask",)) for n in ("a", "b")),
        tools={"ask": tool(ask), "stop": tool(stop, ends=True)},
        turns=turns,
        world=lambda scenario: Counter(),
        max_turns=12,
    )


CASE = Scenario(id="one", visible={}, truth={})


def play(team: Team, scenario: Scenario, rng: random.Random) -> Iterator[Session]:
    """Play on at random, with some calls that are none; yields the session before every decision or round."""
    session = Session(team, scenario, seed=3)
    while session.to_act:
        yield session
        actions = {}
        for agent in session.to_act:
            legal = [i for i, m in enumerate(session.observe(agent).mask) if m]
            actions[agent] = rng.choice([*legal, *legal, 99, "no JSON at all", '{"tool": "ask", "args": {"no": 1}}'])
        session.act_all(actions)
    yield session


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31))
def test_anywhere(chance: int) -> None:
    """Before each decision, what comes back sees the same and has the same records."""
    for session in play(TEAM, drawn(chance), random.Random(chance)):
        again = restored(TEAM, session.scenario, session.records)
        assert again.records == session.records
        assert again.invalid == session.invalid
        assert [again.observe(a) for a in again.to_act] == [session.observe(a) for a in session.to_act]
        assert (again.ended, again.outcome) == (session.ended, session.outcome)


@pytest.mark.parametrize(
    "turns",
    [
        Pipeline(order=("a", "b"), hand_back=True),
        RoundRobin(order=("a", "b"), rounds=5),
        Simultaneous(order=("a", "b"), rounds=5),
    ],
    ids=lambda t: t.kind,
)
def test_every_protocol(turns: Turns) -> None:
    """The world stands where it stood, so that the next answer is the next number."""
    for chance in range(10):
        for session in play(counting(turns), CASE, random.Random(chance)):
            again = restored(session.team, CASE, session.records)
            assert again.world.asked == session.world.asked
            assert again.records == session.records
            assert again.to_act == session.to_act


def test_nothing_twice() -> None:
    """Tools that act outside the process are not asked again, and agents still see what was answered."""
    asked = []

    def order(world: Counter) -> int:
        """Buy something."""
        asked.append(1)
        return len(asked)

    team = Team(
        name="buying",
        roles=(Role(name="a", brief="", tools=("order", "stop")),),
        tools={"order": tool(order), "stop": tool(stop, ends=True)},
        turns=Pipeline(order=("a",)),
        world=lambda scenario: Counter(),
    )
    session = Session(team, CASE)
    session.act("a", 0)
    again = restored(team, CASE, session.records, rerun=False)
    assert len(asked) == 1
    assert again.observe("a") == session.observe("a")
    again.act("a", 1)
    assert isinstance(again.records[-1], EpisodeEnded)


def test_not_its_own() -> None:
    """Records of another scenario, or of another order of turns, are refused."""
    session = Session(TEAM, drawn(0))
    with pytest.raises(NotItsRecords, match="do not begin"):
        restored(TEAM, drawn(1), session.records)
    alone = Session(counting(RoundRobin(order=("a", "b"), rounds=2)), CASE)
    alone.act("a", 0)
    with pytest.raises(NotItsRecords, match="a decided where b"):
        restored(counting(RoundRobin(order=("b", "a"), rounds=2)), CASE, alone.records)
