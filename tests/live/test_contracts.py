"""What roles pass on is checked: a team whose roles do not fit is refused at start, a broken promise is no silence."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assembly.fit import agreements, fitting
from assembly.live import CLIENT, LiveRole
from assembly.stage_live import Place, Stage, committed
from assembly.versions import Version
from policies.playing import RulePolicy
from rewards.mix import Mix
from runtime.actor import AgentSpec, BusSpec
from runtime.actor.attendant import Attendant
from runtime.errors import TeamError
from runtime.records import Json, ToolCall
from runtime.tools import tool
from runtime.types import HAND_OVER, Observation, Pipeline, Role, Scenario, Team

GIVES = {
    "type": "object",
    "properties": {"suspect": {"type": "string", "enum": ["port", "supplier"]}},
    "required": ["suspect"],
}


class Nothing:
    """A world without anything."""

    def __init__(self, scenario: Scenario) -> None:
        self.case = scenario.id

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {}, True


def close(world: Nothing) -> str:
    """End it."""
    return "closed"


def team(gives: Any = GIVES, takes: Any = GIVES, **roles: int) -> Team:
    return Team(
        name="pair",
        roles=(
            Role(name="scout", brief="", tools=(), gives=gives, contract=roles.get("contract", 1)),
            Role(name="judge", brief="", tools=("close",), takes=takes, understands=roles.get("understands", 1)),
        ),
        tools={"close": tool(close, ends=True)},
        turns=Pipeline(order=("scout", "judge"), handoff="verdict", verdicts=("port", "supplier", "weather")),
        world=Nothing,
    )


def test_roles_that_fit() -> None:
    """The same schema on both sides, or one that takes more, is accepted."""
    wider = {**GIVES, "properties": {"suspect": {"type": "string"}}}
    assert fitting(team()).name == "pair"
    assert fitting(team(takes=wider)).name == "pair"
    assert len(agreements(team()).sends) == 1


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ({**GIVES, "properties": {"culprit": {"type": "string"}}, "required": ["culprit"]}, "culprit"),
        ({**GIVES, "properties": {"suspect": {"type": "integer"}}}, "suspect"),
        ({**GIVES, "properties": {"suspect": {"type": "string", "enum": ["port"]}}}, "suspect"),
    ],
    ids=["renamed", "another type", "narrower"],
)
def test_roles_that_do_not_fit_are_refused(taken: Any, said: str) -> None:
    """A field renamed upstream, a type narrowed: both roles and the place are named, before anything is started."""
    with pytest.raises(TeamError, match=r"scout -> judge") as refused:
        fitting(team(takes=taken))
    assert said in str(refused.value)


def test_versions_apart_are_refused() -> None:
    """The same schema with another meaning has another version."""
    with pytest.raises(TeamError, match="sends version 2, judge takes version 1"):
        fitting(team(contract=2))
    assert fitting(team(contract=2, understands=2))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    def suspects(seen: Observation, chance: Random) -> ToolCall:
        return ToolCall(tool=HAND_OVER, args={"suspicion": str(seen.seen[0].data["looks_like"])})

    def closes(seen: Observation, chance: Random) -> ToolCall:
        return ToolCall(tool="close")

    own = {"type": "object", "properties": {"suspicion": {"enum": ["port", "supplier"]}}, "required": ["suspicion"]}
    players = {"scout": RulePolicy(suspects), "judge": RulePolicy(closes)}
    version = Version(name="v", team=team(gives=own, takes=own), seats=players, judge=Mix([]))
    place = Place.under(tmp_path)
    with Stage(place, version) as opened:
        bus = BusSpec(redis=place.redis, roles=("scout", "judge", CLIENT), agreed=agreements(version.team), keep=False)
        agents = []
        for role in ("scout", "judge"):
            made = LiveRole(version, role, committed(opened.bus))
            spec = AgentSpec(team="pair", role=role, store=place.store, bus=bus, make=lambda made=made: made)
            agents.append(Attendant(spec, bus))
        yield opened
        for agent in agents:
            agent.stop()


def test_a_broken_promise_ends_the_session_and_says_where(stage: Stage) -> None:
    """What a role passes on against its own contract is a dead letter with path and value, and nobody waits for it."""
    cases = [Scenario(id=x, visible={"looks_like": x}, truth={}) for x in ("port", "weather", "supplier")]
    ended = {e.scenario: e for e in stage.run(cases)}
    assert ended["port"].success
    assert ended["supplier"].success
    assert not ended["weather"].success
    (letter,) = stage.bus.dead_letters()
    for part in ("scout -> judge", "handed", "suspicion", "weather"):
        assert part in letter.reason, letter.reason
