"""A chain that cannot go on is given up: what was done outside is undone, and the session ends, saying why."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from assembly.live import CLIENT, LiveRole
from assembly.stage_live import Place, Stage, committed
from assembly.versions import Version
from policies.playing import RulePolicy
from rewards.mix import Mix
from runtime.actor import AgentSpec, BusSpec
from runtime.actor.attendant import Attendant
from runtime.records import EpisodeEnded, Json, ToolUndone
from runtime.tools import tool
from runtime.types import Observation, Outside, Pipeline, Role, Scenario, Team


@dataclass
class Market:
    """The world outside: it outlives every session."""

    orders: dict[str, str] = field(default_factory=dict[str, str])
    undone: list[str] = field(default_factory=list[str])


class Cart:
    """The world of one session."""

    def __init__(self, scenario: Scenario) -> None:
        self.case = scenario.id

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {}, True


def shop(market: Market) -> Team:
    def order(cart: Cart, what: Literal["tea", "salt"], key: str = "") -> str:
        """Order something."""
        market.orders[key] = f"{cart.case}/{what}"
        return market.orders[key]

    def cancel(cart: Cart, answer: Json, what: str, key: str = "") -> None:
        if key in market.orders:
            market.undone.append(market.orders.pop(key))

    def approve(cart: Cart) -> str:
        """Approve the order, which ends the case."""
        return "approved"

    return Team(
        name="shop",
        roles=(
            Role(name="buyer", brief="", tools=("order",)),
            Role(name="boss", brief="", tools=("approve",)),
        ),
        tools={
            "order": tool(order, outside=Outside(timeout_s=5, key="key", idempotent=True, undo=cancel)),
            "approve": tool(approve, ends=True),
        },
        turns=Pipeline(order=("buyer", "boss")),
        world=Cart,
    )


def buys(seen: Observation, chance: Random):
    from runtime.records import ToolCall
    from runtime.types import HAND_OVER

    wanted = ("tea", "salt")
    done = sum(s.kind == "answer" for s in seen.seen)
    return ToolCall(tool="order", args={"what": wanted[done]}) if done < 2 else ToolCall(tool=HAND_OVER)


def approves(seen: Observation, chance: Random):
    from runtime.records import ToolCall

    if "never" in seen.text:
        raise OSError("the boss is not in")
    return ToolCall(tool="approve")


@pytest.fixture
def market() -> Market:
    return Market()


@pytest.fixture
def stage(market: Market, tmp_path: Path) -> Iterator[Stage]:
    seats = {"buyer": RulePolicy(buys), "boss": RulePolicy(approves)}
    version = Version(name="v", team=shop(market), seats=seats, judge=Mix([]))
    place = Place.under(tmp_path)
    with Stage(place, version) as opened:
        bus = BusSpec(redis=place.redis, roles=("buyer", "boss", CLIENT), keep=False)
        agents = [
            Attendant(
                AgentSpec(
                    team="shop",
                    role=role,
                    store=place.store,
                    bus=bus,
                    make=lambda role=role: LiveRole(version, role, committed(opened.bus)),
                ),
                bus,
            )
            for role in ("buyer", "boss")
        ]
        yield opened
        for agent in agents:
            agent.stop()


def case(name: str) -> Scenario:
    return Scenario(id=name, visible={"note": name}, truth={})


def test_what_cannot_go_on_is_undone(stage: Stage, market: Market) -> None:
    """Both orders of the failing case are cancelled, the last one first; the other cases' stand."""
    ended = {e.scenario: e for e in stage.run([case("good-1"), case("never"), case("good-2")])}
    assert ended["good-1"].success
    assert ended["good-2"].success
    assert not ended["never"].success
    assert "the boss is not in" in ended["never"].outcome["given_up"]
    assert ended["never"].outcome["undone"] is True
    assert market.undone == ["never/salt", "never/tea"]
    assert sorted(market.orders.values()) == ["good-1/salt", "good-1/tea", "good-2/salt", "good-2/tea"]
    records = stage.records(ended["never"].session)
    assert [r.ok for r in records if isinstance(r, ToolUndone)] == [True, True]
    assert isinstance(records[-1], EpisodeEnded)


def test_giving_up_twice_undoes_once(stage: Stage, market: Market) -> None:
    """Also what a second process, or one that was started again, gives up once more."""
    (ended,) = stage.run([case("never")])
    market.undone.clear()
    assert stage.give_up(ended.session, "again")
    assert market.undone == []
    assert sum(isinstance(r, EpisodeEnded) for r in stage.records(ended.session)) == 1
