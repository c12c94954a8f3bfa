"""Rewards that look ahead, remember, or do not care."""

from collections.abc import Callable

import pytest

from rewards.audit import audit
from rewards.audit.material import Evaluating
from rewards.standardize import RewardStandardizer
from runtime.terms import term
from runtime.tools import tool
from runtime.types import RewardTerm, View
from tests.audit.tiny import Box, asked, material, right, showing, tiny


def reads_the_last_record() -> RewardTerm:
    @term(kind="shaping", name="planted")
    def planted(view: View) -> float:
        return float(view.played.records[-1].kind == "episode_ended")  # pyright: ignore

    return planted


def remembers_how_it_ended() -> RewardTerm:
    ended: dict[str, float] = {}

    @term(kind="shaping", name="planted")
    def planted(view: View) -> float:
        last = view.history[-1]
        if last.kind == "episode_ended":  # pyright: ignore
            ended[last.correlation_id] = 1.0
        return ended.get(last.correlation_id, 0.0)

    return planted


def keeps_the_records() -> RewardTerm:
    kept: dict[str, object] = {}

    @term(kind="shaping", name="planted")
    def planted(view: View) -> float:
        records = kept.setdefault(view.history[0].correlation_id, view.history._records)  # pyright: ignore
        return float(len(records))  # pyright: ignore

    return planted


def peeps_at_the_truth() -> RewardTerm:
    @term(kind="shaping", name="planted")
    def planted(view: View) -> float:
        return float(len(view.played.scenario.truth["colour"]))  # pyright: ignore

    return planted


def asks_for_the_outcome() -> RewardTerm:
    @term(kind="shaping", name="planted")
    def planted(view: View) -> float:
        return float(view.success)

    return planted


PLANTS = (
    reads_the_last_record,
    remembers_how_it_ended,
    keeps_the_records,
    peeps_at_the_truth,
    asks_for_the_outcome,
)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_reward_that_looks_ahead_is_found(plant: Callable[[], RewardTerm]) -> None:
    """A step's reward may depend on its past only, by whatever way the term reaches the rest."""
    report = audit(material(terms=(right, asked, plant())), ["future-in-reward"])
    assert {f.where.term for f in report.errors} == {"planted"}


def test_a_reward_that_ignores_the_truth_is_found() -> None:
    """An outcome term that pays for having finished, or for a favourite colour, does not depend on the truth."""

    @term(kind="outcome", reads=["outcome"], at_end=True)
    def finished(view: View) -> float:
        return float(bool(view.outcome["named"]))

    @term(kind="outcome", reads=["outcome"], at_end=True)
    def favourite(view: View) -> float:
        return float(view.outcome["named"] == "emerald")

    for planted in (finished, favourite):
        assert not audit(material(terms=(planted,)), ["label-shuffle"]).ok


def test_a_reward_that_pays_for_being_wrong_is_found() -> None:
    """The best player must lose when the truth is another."""

    @term(kind="outcome", reads=["outcome"], at_end=True)
    def wrong(view: View) -> float:
        return -float(view.success)

    assert not audit(material(terms=(wrong,)), ["label-shuffle"]).ok


def test_an_evaluation_that_changes_statistics_is_found() -> None:
    """Update in place of transform, and a list that grows."""
    statistics, seen = RewardStandardizer(), [1.0]
    statistics.update("a", [1.0, 2.0])
    checked = material()
    for evaluate in (lambda: statistics.update("a", [3.0]), lambda: seen.append(2.0)):
        checked.evaluating = Evaluating({"standardizer": statistics.state, "seen": lambda: seen}, evaluate)
        assert len(audit(checked, ["statistics-touched-by-eval"]).errors) == 1
    checked.evaluating = Evaluating({"standardizer": statistics.state}, lambda: statistics.transform("a", [3.0]))
    assert audit(checked, ["statistics-touched-by-eval"]).ok


def test_pay_that_agents_can_see_is_found() -> None:
    """A term that writes where a world reads tells agents what they were paid."""
    board: list[float] = []

    @term(kind="cost")
    def telling(view: View) -> float:
        board[:] = [asked.function(view)]
        return board[0]

    team = tiny(world=showing(lambda box, agent: {"board": list(board)}))
    assert not audit(material(team, (right, telling)), ["cross-agent"]).ok


def test_findings_that_others_overhear_are_found() -> None:
    """What the scout weighed is on the judge's screen, though only a verdict was sent."""

    team = tiny(
        world=showing(lambda box, agent: {"screen": [x.upper() for x in box.found]} if agent == "judge" else None),
        turns=type(tiny().turns)(order=("scout", "judge"), handoff="verdict", verdicts=("good", "bad")),
    )
    assert not audit(material(team), ["cross-agent"]).ok


SHARED: list[str] = []


def shared_weigh(world: Box) -> str:
    """Weigh the box."""
    SHARED.append(world.scenario.id)
    return f"weighed {len(SHARED)}"


class Drawer(Box):
    """Keeps the newest case in a drawer of the class."""

    newest = ""

    def __init__(self, scenario) -> None:
        super().__init__(scenario)
        Drawer.newest = scenario.id

    def look(self, agent: str) -> str:
        return f"newest {Drawer.newest}"


def test_state_shared_by_sessions_is_found() -> None:
    """A module's list that grows, and a class that keeps the newest session."""
    growing = tiny(tools={**tiny().tools, "weigh": tool(shared_weigh, name="weigh")})
    for team in (growing, tiny(world=Drawer)):
        assert not audit(material(team), ["cross-session"]).ok
