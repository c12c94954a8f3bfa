"""The team as a whole: it is well formed, repeatable, and refuses world files that are not."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.check import check_team
from envs.scenarios import Generated
from envs.session import Session
from envs.supply_chain import team
from envs.supply_chain.world_file import read_world
from envs.team_env import TeamEnv
from rewards.mix import Mix, Weighted
from runtime.errors import TeamError
from runtime.records import Rewarded, ToolCall
from runtime.types import Pipeline, Team
from tests.supply_chain.toys import SHIPPED, ask_all, drawn_world, judge, written

Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("handoff", ["notes", "verdict"])
def test_the_shipped_team_passes_every_check(handoff: Any) -> None:
    """PettingZoo's api_test and seed_test, determinism, masks, schemas, hidden truth."""
    report = check_team(team(handoff=handoff), episodes=5)
    assert report.ok, str(report)


def test_another_worlds_team_passes_every_check(tmp_path: Path) -> None:
    """Other agents, other tools, other words."""
    report = check_team(team(world=written(drawn_world(1), tmp_path)), episodes=5)
    assert report.ok, str(report)


def test_the_same_key_is_the_same_case_and_another_is_another() -> None:
    """Split, seed and index name a case; train and evaluation do not meet."""
    make = team().generate
    assert make is not None
    assert make("train", 1, 5) == make("train", 1, 5)
    others = [make("train", 1, 6), make("train", 2, 5), make("eval", 1, 5)]
    assert all(o.id != make("train", 1, 5).id and o.seed != make("train", 1, 5).seed for o in others)


def test_the_return_is_payoff_less_costs() -> None:
    """Two tools and two hand-overs are paid for, the remedy pays as the true cause has it; each is a term's value."""
    of = team()
    env = TeamEnv(of, Generated(of, "train", 1), judge(of))
    env.reset(options={"episode": 0})
    for call in ("order_history", "inventory_count", "hand_over", "hand_over", "resolve"):
        seen = env.session.observe(env.agent_selection)
        env.step(next(i for i, c in enumerate(seen.candidates) if c.tool == call))
    cause = env.session.scenario.truth["cause"]
    paid: dict[str, float] = dict.fromkeys(of.terms, 0.0)
    for r in env.session.records:
        if isinstance(r, Rewarded):
            assert r.value is not None
            paid[r.term] += r.value
    remedy = env.session.outcome["remedy"]
    assert paid == {"payoff": SHIPPED["payoff"][remedy][cause], "tool_cost": -6.0, "handoff_cost": -2.0}
    assert env.team_return == sum(paid.values())


def test_success_is_the_remedy_that_pays_most_for_the_cause() -> None:
    """And no other."""
    of = team()
    for remedy in SHIPPED["remedies"]:
        session = ask_all(of, 3)
        session.act("resolver", ToolCall(tool="resolve", args={"remedy": remedy}))
        row = {r: SHIPPED["payoff"][r][session.scenario.truth["cause"]] for r in SHIPPED["remedies"]}
        assert session.ended
        assert session.success == (row[remedy] == max(row.values()))


def test_a_case_cut_without_a_remedy_is_paid_as_the_worst_one() -> None:
    """Stalling is no way out."""
    of = team()
    session = ask_all(of, 1)
    since = 0
    while not session.ended:
        since = len(session.records)
        session.act("resolver", "no call at all")
    assert session.truncated
    paid = Mix([Weighted(of.terms["payoff"])])(session, since)
    assert paid.team == min(SHIPPED["payoff"][r][session.scenario.truth["cause"]] for r in SHIPPED["remedies"])


def test_a_tool_once_asked_is_masked_and_nobody_hands_back() -> None:
    """Legal are the tools not yet asked and the hand-over."""
    of = team()
    assert of.generate is not None
    session = Session(of, of.generate("train", 1, 0))
    assert [c.tool for c in session.observe("triage").candidates] == ["order_history", "inventory_count", "hand_over"]
    session.act("triage", 1)
    assert session.observe("triage").mask == (True, False, True)


def test_a_verdict_carries_the_suspicion_and_nothing_else() -> None:
    """The receiver sees the case and the name of a cause."""
    of = team(handoff="verdict")
    assert of.generate is not None
    session = Session(of, of.generate("train", 1, 0))
    session.act("triage", ToolCall(tool="order_history"))
    session.act("triage", ToolCall(tool="hand_over", args={"suspicion": "customs_hold"}))
    seen = session.observe("investigator").seen
    assert [s.kind for s in seen] == ["case", "note"]
    assert seen[1].data == {"suspicion": "customs_hold"}


def roles(of: Team) -> tuple[str, ...]:
    assert isinstance(of.turns, Pipeline)
    return of.turns.order


def test_roles_and_tools_are_the_files(tmp_path: Path) -> None:
    """Whatever a world file calls them."""
    other = team(world=written(drawn_world(0), tmp_path))
    assert roles(other) == ("scout", "clerk", "auditor", "boss")
    assert other.role("clerk").tools == ()
    assert other.role("boss").tools == ("resolve",)
    assert (
        other.tools["auditor_look-1"].cost_usd
        == read_world(str(tmp_path / "drawn_0.json")).tools["auditor_look-1"].cost
    )


FAULTS: list[tuple[str, Change]] = [
    (r"prior: the probabilities sum to 1\.1", lambda w: w["prior"].update(supplier_delay=0.3)),
    (r"prior\.supplier_delay: Input should be", lambda w: w["prior"].update(supplier_delay=-0.2)),
    (r"likelihood\.customs_hold: the probabilities sum to 0\.9", lambda w: odds(w).update(customs_hold=[0.4, 0.5])),
    (r"likelihood\.customs_hold: 3 probabilities for 2", lambda w: odds(w).update(customs_hold=[0.4, 0.5, 0.1])),
    (r"likelihood: cause 'customs_hold' is missing", lambda w: odds(w).pop("customs_hold")),
    (r"likelihood: 'war' is no cause of this file", lambda w: odds(w).update(war=[0.5, 0.5])),
    (r"owner: 'nobody' is no agent", lambda w: customs(w).update(owner="nobody")),
    (r"the last agent, which chooses the remedy", lambda w: customs(w).update(owner="resolver")),
    (r"cost: Input should be greater than or equal to 0", lambda w: customs(w).update(cost=-1)),
    (r"payoff: remedy 'reroute_port' is missing", lambda w: w["payoff"].pop("reroute_port")),
    (r"payoff\.reroute_port: cause 'customs_hold' is missing", lambda w: reroute(w).pop("customs_hold")),
    (r"payoff: 'pray' is no remedy", lambda w: w["payoff"].update(pray=reroute(w))),
    (r"payoff\.reroute_port\.customs_hold: .*finite", lambda w: reroute(w).update(customs_hold=float("nan"))),
    (r"remedies: 'reroute_port' stands there twice", lambda w: w["remedies"].append("reroute_port")),
    (r"agents: 'triage' stands there twice", lambda w: w["agents"].insert(0, "triage")),
    (r"agents: '2nd' is no name", lambda w: w["agents"].insert(0, "2nd")),
    (r"tools\.resolve: the name is taken", lambda w: w["tools"].update(resolve=w["tools"]["customs_status"])),
    (r"findings, read as words: 'held' stands there twice", lambda w: customs(w).update(findings=["held", "Held"])),
    (r"agents: .*at least 2", lambda w: w.update(agents=["resolver"])),
    (r"currency: Input should be 'USD'", lambda w: w.update(currency="EUR")),
    (r"handoff_cost: Field required", lambda w: w.pop("handoff_cost")),
    (r"colour: Extra inputs are not permitted", lambda w: w.update(colour="red")),
]  # fmt: skip


def odds(world: dict[str, Any]) -> dict[str, Any]:
    return customs(world)["likelihood"]


def customs(world: dict[str, Any]) -> dict[str, Any]:
    return world["tools"]["customs_status"]


def reroute(world: dict[str, Any]) -> dict[str, Any]:
    return world["payoff"]["reroute_port"]


@pytest.mark.parametrize(("message", "change"), FAULTS)
def test_a_faulty_world_file_is_refused_with_its_fault(message: str, change: Change, tmp_path: Path) -> None:
    """The message says where and what."""
    world = copy.deepcopy(SHIPPED)
    change(world)
    with pytest.raises(TeamError, match=message):
        team(world=written(world, tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ('{"name": 1, "name": 2}', "'name' stands twice"), ("[]", "the file: Input should be")],
)
def test_a_file_that_is_no_world_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Not JSON, ambiguous JSON, or other JSON."""
    path = tmp_path / "w.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TeamError, match=message):
        team(world=str(path))


def test_several_faults_are_told_at_once(tmp_path: Path) -> None:
    """So that a file is corrected in one go."""
    world = copy.deepcopy(SHIPPED)
    world["prior"]["supplier_delay"] = 0.9
    world["payoff"].pop("reroute_port")
    with pytest.raises(TeamError, match=r"prior.*; payoff"):
        team(world=written(world, tmp_path))


def test_an_unknown_world_or_handoff_is_refused() -> None:
    """With what there is instead."""
    with pytest.raises(TeamError, match="supply_chain_v1"):
        team(world="supply_chain_v9")
    with pytest.raises(TeamError, match="notes or verdict"):
        team(handoff="gossip")  # pyright: ignore[reportArgumentType]
