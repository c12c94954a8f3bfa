"""The collapse alarm names each reason, once it has held long enough, and no other."""

from collections import Counter
from typing import Any

import pytest

from assembly.build import Build
from assembly.training import Collapse
from envs.tally import Tally
from telemetry.scalars import AgentReport, IterationReport, PolicyReport
from trainers.alarm import Alarm, Expected, expected

ASKS = Expected(to_beat=3.0, best=4.0, optional_tools={"buyer": frozenset({"look"})})
NOTHING = Expected(to_beat=None, best=None, optional_tools={})
OPTIMAL = Expected(to_beat=3.0, best=3.75, optional_tools={})


def report(iteration: int = 1, return_mean: float = 0.0, coefficient: float = 0.01, **figures: Any) -> IterationReport:
    return IterationReport(
        iteration=iteration,
        env_steps=100,
        seconds=1.0,
        return_mean=return_mean,
        agents={"buyer": AgentReport(**{"entropy": 0.5, "kl": 0.01, **figures})},
        policies={"buyer": PolicyReport(lr=1e-3, entropy_coeff=coefficient)},
    )


def tally(returns: tuple[float, ...] = (1.0, 2.0), successes: int = 0, **calls: int) -> Tally:
    return Tally(
        episodes=len(returns),
        successes=successes,
        returns=list(returns),
        calls=Counter({("buyer", t): n for t, n in calls.items()}),
    )


def looks(alarm: Alarm, figures: dict[str, Any], played: Tally, iterations: int) -> list[str | None]:
    return [alarm.look(report(i, **figures), played) for i in range(1, iterations + 1)]


@pytest.mark.parametrize(
    ("figures", "played", "expected", "words"),
    [
        ({"kl": 2.0}, tally(), NOTHING, "the policy of buyer moved by KL 2 nat an update (bound 1)"),
        ({"entropy": 1e-5}, tally(), NOTHING, "the policy of buyer has entropy 1e-05 nat (bound 0.001)"),
        ({}, tally((2.0, 2.0)), NOTHING, "episode returns have standard deviation 0 (bound 1e-06)"),
        ({"entropy": 0.02}, tally(hand_over=200, look=1), ASKS, "buyer calls no tool any more"),
        ({"return_mean": 3.7}, tally((3.7, 3.7)), OPTIMAL, "episode returns have standard deviation 0"),
        ({"return_mean": 3.7}, tally((3.7, 3.7), successes=1), OPTIMAL, "episode returns have standard deviation 0"),
        ({"return_mean": 3.75, "kl": 2.0}, tally((3.75, 3.75)), OPTIMAL, "moved by KL 2 nat"),
    ],
)
def test_a_reason_is_named_after_its_patience(
    figures: dict[str, Any], played: Tally, expected: Expected, words: str
) -> None:
    """Silent for two iterations, then the reason and how long it has held."""
    found = looks(Alarm(Collapse(patience=3), expected), figures, played, 3)
    assert found[:2] == [None, None]
    assert found[2]
    assert words in found[2]
    assert found[2].endswith("for 3 iterations")


@pytest.mark.parametrize(
    ("figures", "played", "expected"),
    [
        ({}, tally(), NOTHING),
        ({"kl": None, "entropy": None}, tally((3.0,)), NOTHING),
        ({"entropy": 1e-5, "coefficient": 0.0}, tally(), NOTHING),
        ({"entropy": 0.02, "return_mean": 3.5}, tally(hand_over=200), ASKS),
        ({"entropy": 0.4}, tally(hand_over=200), ASKS),
        ({"entropy": 0.02}, tally(hand_over=100, look=100), ASKS),
        ({"return_mean": 3.7499999999}, tally((3.7499999999, 3.7499999999)), OPTIMAL),
        ({"return_mean": 4.0, "entropy": 1e-5}, tally((4.0, 4.0)), OPTIMAL),
        ({"return_mean": -1.0, "entropy": 1e-5}, tally((-1.0, -1.0), successes=2), NOTHING),
    ],
)
def test_what_is_no_collapse_raises_no_alarm(figures: dict[str, Any], played: Tally, expected: Expected) -> None:
    """Figures in bounds or unknown; exploration that was planned to end; a team that is quiet and good, or tries.

    A team that always succeeds, or earns what is known to be the most, has nothing left to learn: standing still is
    no collapse.
    """
    assert looks(Alarm(Collapse(patience=1), expected), figures, played, 3) == [None, None, None]


def test_the_best_known_return_is_the_optimum_where_there_is_one(whole_build: Build) -> None:
    """Random play is nothing to reach, and a rule counts where nothing better is known."""
    returns = {"random": -1.0, "rule": 2.0, "optimal": 3.0}
    assert expected(whole_build.team, ("buyer",), returns).best == 3.0
    assert expected(whole_build.team, ("buyer",), {"random": 5.0, "rule": 2.0}).best == 2.0
    assert expected(whole_build.team, ("buyer",), {"random": 5.0}).best is None


def test_a_good_iteration_begins_the_count_anew() -> None:
    """Only iterations in a row count; where the trouble began is where to go back before."""
    alarm = Alarm(Collapse(patience=2), NOTHING)
    assert alarm.look(report(1, kl=2.0), tally()) is None
    assert alarm.began() == 1
    assert alarm.look(report(2), tally()) is None
    assert alarm.began() is None
    assert alarm.look(report(3, kl=2.0), tally()) is None
    assert alarm.look(report(4, kl=2.0), tally()) is not None
    assert alarm.began() == 3
