"""What a team knows together: put up by one agent, seen by the next one's decision, and never overwritten unseen."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from assembly.driving import Driven
from assembly.live import CLIENT, LiveRole
from assembly.stage_live import Place, Stage, committed
from assembly.versions import Version
from envs.restore import restored
from envs.session import Session
from policies.playing import RulePolicy
from rewards.mix import Mix
from runtime.actor import AgentSpec, BusSpec
from runtime.actor.attendant import Attendant
from runtime.bus import Event
from runtime.errors import TeamError
from runtime.facts import FactBoard, FactChanged
from runtime.records import Decided, EpisodeOpened, Json, Observed, ToolAnswered, ToolCall
from runtime.store import Store, open_store
from runtime.toolbox.facts import PUT, READ, MemoryBoard, SharedFacts, fact_tools, facts_of
from runtime.tools import finite_calls, tool
from runtime.types import HAND_OVER, Observation, Pipeline, Role, Scenario, Team

SESSIONS = 30


class Harbour:
    """A world of which only what is known together matters."""

    def __init__(self, scenario: Scenario) -> None:
        self.facts = SharedFacts({"ships": 0})

    def look(self, agent: str) -> Json:
        return self.facts.shown(agent) if agent == "pilot" else None

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {}, True


def moor(world: Harbour) -> str:
    """Moor, which ends the case."""
    return "moored"


TEAM = Team(
    name="harbour",
    roles=(
        Role(name="watch", brief="", tools=(READ, PUT), calls=(ToolCall(tool=READ, args={"name": "ships"}),)),
        Role(name="pilot", brief="", tools=(PUT, "moor"), calls=(ToolCall(tool="moor"),)),
    ),
    tools={**fact_tools(["ships"], {"type": "integer"}), "moor": tool(moor, ends=True)},
    turns=Pipeline(order=("watch", "pilot")),
    world=Harbour,
)


def watches(seen: Observation, chance: Random) -> ToolCall:
    """Read, and put up one more; where somebody was faster, read again."""
    told = [s for s in seen.seen if s.kind in ("answer", "error")]
    if not told or told[-1].kind == "error":
        return ToolCall(tool=READ, args={"name": "ships"})
    if told[-1].source == READ:
        return ToolCall(tool=PUT, args={"name": "ships", "value": (told[-1].data["value"] or 0) + 1})
    return ToolCall(tool=HAND_OVER)


def pilots(seen: Observation, chance: Random) -> ToolCall:
    """Put up one more than the board shows, until nobody was faster."""
    if any(s.kind == "answer" for s in seen.seen):
        return ToolCall(tool="moor")
    (board,) = [s.data for s in seen.seen if s.kind == "world"]
    return ToolCall(tool=PUT, args={"name": "ships", "value": board["ships"]["value"] + 1})


VERSION = Version(name="v", team=TEAM, seats={"watch": RulePolicy(watches), "pilot": RulePolicy(pilots)}, judge=Mix([]))


def case(name: str) -> Scenario:
    return Scenario(id=name, visible={}, truth={})


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Two agents on a real bus and store; sessions go on at the same time, an event of each after the other."""
    place = Place.under(tmp_path)
    with Stage(place, VERSION) as opened:
        bus = BusSpec(redis=place.redis, roles=("watch", "pilot", CLIENT), keep=False)
        agents: list[Attendant] = []
        for role in ("watch", "pilot"):
            made = LiveRole(VERSION, role, committed(opened.bus), board=FactBoard(opened.bus.store, TEAM.name))
            spec = AgentSpec(team=TEAM.name, role=role, store=place.store, bus=bus, make=lambda made=made: made)
            agents.append(Attendant(spec, bus))
        yield opened
        for agent in agents:
            agent.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/facts.db")
    yield opened
    opened.close()


def test_the_next_decision_sees_what_was_put_up(stage: Stage) -> None:
    """The pilot is shown what the watch has just said. Both count up the same fact at the same time; none is lost."""
    ended = list(stage.run([case(f"case-{k}") for k in range(SESSIONS)]))
    assert len(ended) == SESSIONS
    assert FactBoard(stage.bus.store, TEAM.name).get("ships").value == 2 * SESSIONS, "no update was lost"
    for each in ended:
        records = stage.records(each.session)
        put, *_ = [r.value for r in records if isinstance(r, ToolAnswered) and r.tool == PUT and r.ok]
        seen, *_ = [r.text for r in records if isinstance(r, Observed) and r.agent == "pilot"]
        (board,) = [line for line in seen.splitlines() if line.startswith("world ")]
        assert json.loads(board.removeprefix("world "))["ships"]["version"] >= put["version"]
    authors = [f.author.rsplit("/", 1)[0] for f in FactBoard(stage.bus.store, TEAM.name).history("ships")]
    assert sorted(authors) == sorted(f"{e.session}/{who}" for e in ended for who in ("watch", "pilot"))


def test_who_has_not_seen_the_newest_version_is_refused(store: Store) -> None:
    """Two agents saw the same; the second to speak is told so, reads again, and then may."""
    ours, theirs = SharedFacts(), SharedFacts()
    for each in (ours, theirs):
        each.move(FactBoard(store, "t"), [])
    assert ours.put("berth", "free", "one/watch/0")["version"] == 1
    assert theirs.read("berth", "two/watch/0")["value"] == "free"
    assert ours.shown("watch") == {"berth": {"name": "berth", "value": "free", "version": 1}}
    assert theirs.put("berth", "taken", "two/watch/1")["version"] == 2
    with pytest.raises(FactChanged, match="version 2, not 1"):
        ours.put("berth", "closed", "one/watch/1")
    ours.read("berth", "one/watch/2")
    assert ours.put("berth", "closed", "one/watch/3")["version"] == 3
    assert [f.value for f in FactBoard(store, "t").history("berth")] == ["free", "taken", "closed"]


def test_a_decision_that_is_carried_out_again_says_it_once(store: Store) -> None:
    """Its process died before the turn was committed: the fact stands, and is not put up a second time."""
    for _ in range(2):
        facts = SharedFacts()
        facts.move(FactBoard(store, "t"), [])
        facts.shown("watch")
        assert facts.put("berth", "taken", "one/watch/0")["version"] == 1
    assert len(FactBoard(store, "t").history("berth")) == 1


def test_what_was_seen_is_remembered_with_the_session(store: Store) -> None:
    """Another process goes on with the session: what the agent had read then is what it may build on."""
    board = FactBoard(store, "t")
    board.put("berth", "free", author="x", expected=0)
    first = SharedFacts()
    first.move(board, [])
    answer = first.read("berth", "one/watch/0")
    record = ToolAnswered(correlation_id="one", at=0.0, agent="watch", turn=0, tool=READ, ok=True, value=answer)
    board.put("berth", "taken", author="y", expected=1)
    second = SharedFacts()
    second.move(board, [record])
    with pytest.raises(FactChanged):
        second.put("berth", "closed", "one/watch/1")


def test_in_training_every_episode_has_a_board_of_its_own() -> None:
    """The same team, played without a store: it begins with what is known, and a restored session is where it was."""
    for _ in range(2):
        session = Session(TEAM, case("one"))
        driven = Driven(session, VERSION.seats, greedy=True)
        while not driven.over:
            driven.step()
        assert facts_of(session.world).shown("pilot") == {"ships": {"name": "ships", "value": 2, "version": 3}}
        back = restored(TEAM, case("one"), session.records)
        assert facts_of(back.world).shown("pilot") == facts_of(session.world).shown("pilot")
        assert len([r for r in session.records if isinstance(r, Decided)]) == 5


def test_without_a_board_a_team_that_shares_is_refused() -> None:
    """Facts that only one process could see would be lost in silence."""
    role = LiveRole(VERSION, "watch", lambda session: [])
    opening = Event(to="watch", correlation_id="s", payload={"open": {"id": "x", "visible": {}, "truth": {}}})
    with pytest.raises(TeamError, match="was given no board"):
        role.handle(None, opening)
    with pytest.raises(TeamError, match="shares no facts"):
        facts_of(EpisodeOpened)


def test_policies_that_choose_can_list_the_calls() -> None:
    """With an enumeration of values, every call is a candidate."""
    tools = fact_tools(["berth", "tide"], {"enum": ["high", "low"]})
    assert len(finite_calls(tools[READ])) == 2
    assert len(finite_calls(tools[PUT])) == 4


def test_a_board_in_memory_keeps_every_rule() -> None:
    """Compare-and-set, one more each time, and nothing for what nobody has said."""
    board = MemoryBoard({"tide": "high"})
    assert board.get("berth") is None
    with pytest.raises(FactChanged):
        board.put("berth", "free", author="a", expected=1)
    assert board.put("tide", "low", author="a", expected=1).version == 2
    assert board.said("tide", "a").value == "low"
    assert {n: f.value for n, f in board.all().items()} == {"tide": "low"}
