"""What my_team is, as promises that can be broken: read them first, and change them with the team."""

from random import Random

import pytest
from envs.check import check_team
from envs.session import Session
from rewards.mix import Mix, Weighted
from runtime.records import Rewarded
from runtime.types import Scenario

from my_team import LOOK_USD, SIGNS, Machine, change, look, machine, team


def a_case(broken: str) -> Scenario:
    """A case in which that part is broken."""
    return Scenario(id="case", visible={"machine": "M0001", "hall": "north"}, truth={"broken": broken})


def played(rule: str, broken: str) -> tuple[Session, dict[str, float]]:
    """A case played by one of the team's rules, and what each reward term paid for it."""
    ours = team()
    session = Session(ours, a_case(broken))
    judge = Mix([Weighted(t) for t in ours.terms.values()])
    policies = ours.baselines[rule].policies or {}
    while not session.ended:
        (agent,), since = session.to_act, len(session.records)
        session.act(agent, policies[agent](session.observe(agent), Random(0)))
        session.note(judge(session, since).records)
    paid = [r for r in session.records if isinstance(r, Rewarded)]
    return session, {name: sum(r.value or 0.0 for r in paid if r.term == name) for name in ours.terms}


def test_the_team_is_sound() -> None:
    """Names, schemas, turns, scenarios and play hold together, and the truth cannot be seen."""
    report = check_team(team())
    assert report.ok, str(report)


@pytest.mark.parametrize("broken", SIGNS)
def test_a_look_tells_what_is_broken(broken: str) -> None:
    """So it can be learnt what to do about it."""
    assert look(Machine(a_case(broken))) == SIGNS[broken]


@pytest.mark.parametrize("part", SIGNS)
def test_only_the_right_part_is_a_success(part: str) -> None:
    """The world says how a case ended."""
    world = Machine(a_case("fan"))
    change(world, part)  # pyright: ignore[reportArgumentType] any of the parts
    assert world.outcome() == ({"changed": part}, part == "fan")


def test_cases_are_reproducible_and_differ() -> None:
    """The same arguments make the same case; every part breaks somewhere; training and evaluation share no case."""
    trained = [machine("train", 1, k) for k in range(50)]
    assert trained == [machine("train", 1, k) for k in range(50)]
    assert {c.truth["broken"] for c in trained} == set(SIGNS)
    assert {c.id for c in trained}.isdisjoint(machine("eval", 2, k).id for k in range(50))


@pytest.mark.parametrize("broken", SIGNS)
def test_what_is_paid(broken: str) -> None:
    """Who looks and acts on it gets 1 less the price of the look; who does not look is not billed."""
    session, paid = played("by_the_signs", broken)
    assert session.success
    assert paid == {"mended": 1.0, "looked": -LOOK_USD}
    blind, paid = played("blindly", broken)
    assert paid == {"mended": 1.0 if blind.success else -1.0, "looked": 0.0}


def test_to_look_is_worth_its_price() -> None:
    """Otherwise there would be nothing to learn: the rule that looks earns more than the one that does not."""
    earned = {rule: sum(sum(played(rule, b)[1].values()) for b in SIGNS) for rule in ("by_the_signs", "blindly")}
    assert earned["by_the_signs"] > earned["blindly"]
