"""The audit goes on during training: a reward that is paid for while the task gets worse stops the run."""

from collections.abc import Iterator
from typing import Any

import pytest

from assembly.build import Build
from envs.tally import Tally
from telemetry.scalars import EvaluationReport, IterationReport
from trainers.watch import Watch

PATIENT = 40
"""Iterations that are shown: more than the watcher waits."""


def shown(rises: bool, succeeds: float) -> Iterator[tuple[IterationReport, Tally]]:
    """Iterations in which the return rises, and success ends at that rate."""
    for k in range(PATIENT):
        grown = k / PATIENT
        rate = 0.9 + grown * (succeeds - 0.9)
        worth = 10 * grown if rises else 0.0
        returns = [worth + (n % 7 - 3) for n in range(100)]
        tally = Tally(
            episodes=100, successes=round(100 * rate), returns=returns, calls={("buyer", "look"): 100},
            terms={"right": 400 * rate},
        )  # fmt: skip
        score = EvaluationReport(episodes=40, return_mean=worth, score=rate) if k % 3 == 0 else None
        yield IterationReport(iteration=k + 1, env_steps=200 * k, seconds=k, evaluation=score), tally


def looked(watch: Watch, iterations: Iterator[tuple[IterationReport, Tally]]) -> list[str]:
    return [reason for report, tally in iterations if (reason := watch.look(report, tally))]


def test_paid_more_for_less(whole_build: Build) -> None:
    """The return rises while success falls: a warning first, said once, then a reason to stop."""
    said: list[str] = []
    reasons = looked(Watch(whole_build, said.append), shown(rises=True, succeeds=0.2))
    assert reasons
    assert "success_rate" in reasons[0]
    assert len([s for s in said if s.startswith("audit warning, hacking: success_rate")]) == 1
    assert said.index(next(s for s in said if "warning" in s)) < said.index(next(s for s in said if "error" in s))


def test_honest_learning(whole_build: Build) -> None:
    """Return and success rise together, or success is lost and so is the return: nobody is accused."""
    said: list[str] = []
    assert not looked(Watch(whole_build, said.append), shown(rises=True, succeeds=0.95))
    assert not looked(Watch(whole_build, said.append), shown(rises=False, succeeds=0.2))
    assert said == []


def test_a_waiver(whole_build: Build) -> None:
    """A waived check says what it found and why that is accepted, and stops nothing."""
    settings: dict[str, Any] = whole_build.experiment.model_dump(mode="json")
    settings["rewards"]["audit"]["waive"] = [{"check": "hacking", "reason": "the success flag is wrong here"}]
    waiving = Build(type(whole_build.experiment).model_validate(settings), whole_build.folder)
    said: list[str] = []
    assert not looked(Watch(waiving, said.append), shown(rises=True, succeeds=0.2))
    assert any("waived: the success flag is wrong here" in s for s in said)


@pytest.mark.parametrize("cut", [5, 20, 30])
def test_resumed_it_sees_the_same(whole_build: Build, cut: int) -> None:
    """Saved and loaded in the middle, it stops at the same iteration."""
    iterations = list(shown(rises=True, succeeds=0.2))
    straight = Watch(whole_build, lambda text: None)
    whole = [straight.look(*each) for each in iterations]
    first, second = Watch(whole_build, lambda text: None), Watch(whole_build, lambda text: None)
    parts = [first.look(*each) for each in iterations[:cut]]
    second.load(first.state())
    assert [*parts, *(second.look(*each) for each in iterations[cut:])] == whole
