"""The shipped teams, and PettingZoo environments, under all checks."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from assembly.build import Build
from assembly.loading import load
from assembly.stage import games, material_of
from rewards.audit import audit
from rewards.audit.material import Effort, Material
from rewards.mix import Mix

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
QUICK = Effort(episodes=20, examples=6, openings=150)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))])
@pytest.mark.parametrize("name", ["supply_chain", "customer_service", "equipment_inspection"])
def test_shipped_teams_pass(name: str, seed: int) -> None:
    """No check accuses a shipped team, whatever the seed."""
    scenarios = [f"scenarios.train.seed={2 * seed + 1}", f"scenarios.eval.seed={2 * seed + 2}"]
    build = Build(load(EXPERIMENTS / f"{name}.yaml", [f"seed={seed}", *scenarios]))
    report = audit(material_of(build, QUICK))
    assert [(f.check, f.message) for f in report.findings if f.severity != "note"] == []


def test_a_shipped_game_passes() -> None:
    """An environment that shares nothing between runs is clean; checks that need a team say that they do not apply."""
    report = audit(material_of(Build(load(EXPERIMENTS / "tictactoe.yaml")), QUICK))
    assert [f for f in report.findings if f.severity != "note"] == []
    assert report.ran["cross-session"].skipped == ""
    assert report.ran["truth-in-observation"].skipped == "needs team"


class Guess(ParallelEnv):
    """Guess the hidden bit. It leaks as it is told to."""

    metadata = {"name": "guess"}  # noqa: RUF012
    played = 0

    def __init__(self, leak: str) -> None:
        self.possible_agents, self.leak = ["a", "b"], leak
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Box:
        return spaces.Box(-10, 1e6, (3,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def _seen(self) -> dict[str, np.ndarray]:
        noise = self.chance.normal(size=3)
        if self.leak == "array":
            noise[1] += 3.0 * self.bit
        elif self.leak == "count":
            noise[2] = Guess.played
        return {a: noise.astype(np.float32) for a in self.possible_agents}

    def reset(self, seed: int | None = None, options: dict | None = None):
        self.chance, self.agents = np.random.default_rng(seed), list(self.possible_agents)
        self.bit = int(self.chance.integers(2))
        return self._seen(), {a: {"truth": {"bit": self.bit}} for a in self.agents}

    def step(self, actions: dict[str, int]):
        Guess.played += 1
        bonus = 0.001 * Guess.played if self.leak == "reward" else 0.0
        paid = {a: float(x == self.bit) + bonus for a, x in actions.items()}
        ended, agents = dict.fromkeys(self.agents, True), self.agents
        self.agents = []
        return self._seen(), paid, ended, dict.fromkeys(agents, False), {a: {} for a in agents}


LEAKS = {"none": "", "array": "truth-predictable-at-start", "count": "cross-session", "reward": "cross-session"}


@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_of_games_are_found(leak: str) -> None:
    """Arrays that give a truth away, and state that outlives a run, are found where there is no text."""
    subject = Material(name="guess", agents=("a", "b"), mix=Mix([]), open_game=games(lambda: Guess(leak)), effort=QUICK)
    assert {f.check for f in audit(subject).errors} == {LEAKS[leak]} - {""}
