"""The rows: games with known answers, worlds that can be solved, a page without invented numbers."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test

from bench.__main__ import main
from bench.games import multi_cartpole, relay, two_step
from bench.handwritten import Handwritten, gae
from bench.outcome import Claim, Outcome, machine
from bench.page import page
from bench.results import entry, keep, read
from bench.rows import ROWS
from bench.runs import ROOT
from bench.settings import Contest
from bench.worlds import experiment_for, renamed, renumbered

SHIPPED = ROOT / "experiments" / "supply_chain.yaml"


def test_the_two_step_game_pays_7_or_up_to_8() -> None:
    """Rashid et al. 2018: the safe branch pays 7 whatever follows, the risky one 0, 1, 1 or 8."""
    game = two_step.parallel_env()
    for branch, expected in ((0, [7.0] * 4), (1, [0.0, 1.0, 1.0, 8.0])):
        paid: list[float] = []
        for i in range(4):
            game.reset()
            assert sum(game.step({"agent_0": branch, "agent_1": i % 2})[1].values()) == 0.0
            paid.append(sum(game.step({"agent_0": i // 2, "agent_1": i % 2})[1].values()))
            assert not game.agents
        assert paid == expected


@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test")
def test_games_are_pettingzoo_environments() -> None:
    """PettingZoo's own tests pass on them."""
    parallel_api_test(two_step.parallel_env(), num_cycles=50)
    parallel_api_test(multi_cartpole.parallel_env(), num_cycles=200)
    api_test(relay.env(rounds=2), num_cycles=30)


def test_whose_pole_falls_leaves_and_the_other_goes_on() -> None:
    """An agent that always pushes left is out soon; the other is still paid."""
    game = multi_cartpole.parallel_env()
    seen, _ = game.reset(seed=3)
    terminated: dict[str, bool] = {}
    while len(game.agents) == 2:
        seen, _, terminated, _, _ = game.step({"agent_0": 0, "agent_1": int(seen["agent_1"][2] > 0)})
    assert terminated["agent_0"]
    assert game.agents == ["agent_1"]
    assert game.step({"agent_1": 0})[1] == {"agent_1": 1.0}


@pytest.mark.parametrize("world", [renumbered(11), renamed(12), renumbered(5)], ids=lambda w: w["name"])
def test_drawn_worlds_are_worth_training_on(world: dict, tmp_path: Path) -> None:
    """Their file is well formed, and the optimum lies above asking everything, asking nothing and chance."""
    from assembly.build import Build
    from assembly.team_check import Known, accept
    from rewards.terms import TERMS

    file = experiment_for(world, SHIPPED, tmp_path)
    build = Build(accept(file, (), Known(TERMS)).experiment, tmp_path)
    assert build.team is not None
    exact = {n: b.exact() for n, b in build.team.baselines.items() if b.exact}
    best = exact.pop("optimal")
    assert best > max(exact.values()) + 3.0, exact
    assert set(build.learned) == set(world["agents"])


def test_the_same_seed_draws_the_same_world() -> None:
    """A row can be measured again."""
    assert renumbered(7) == renumbered(7) != renumbered(8)
    assert renamed(7) == renamed(7) != renamed(8)


def test_estimates_of_all_trajectories_at_once_are_those_of_each() -> None:
    """The hand-written loop's advantages obey their recursion (Schulman et al. 2016, eq. 16)."""
    chance = Random(1)
    rewards, values = (np.array([chance.gauss(0, 1) for _ in range(9)], np.float32) for _ in range(2))
    trajectories = [[0, 3, 4], [1], [2, 5, 6, 7, 8]]
    found = gae(rewards, values, trajectories, 0.9, 0.8)
    for rows in trajectories:
        ahead = following = 0.0
        for row in reversed(rows):
            ahead = rewards[row] + 0.9 * following - values[row] + 0.9 * 0.8 * ahead
            following = values[row]
            assert found[row] == pytest.approx(ahead, abs=1e-6)


def test_the_hand_written_loop_learns_the_relay(relay: Contest) -> None:
    """What ours is compared with is a trainer: it comes to name the targets."""
    loop = Handwritten(relay, envs=8)
    returns: list[float] = []
    for _ in range(20):
        rows, _ = loop._sample()
        for name, found in rows.items():
            loop._learn(name, found)
        returns.append(float(np.mean([sum(found.rewards) / len(found.trajectories) for found in rows.values()])))
    assert np.mean(returns[-3:]) > np.mean(returns[:3]) + 0.5


def test_claims_say_whether_they_are_met() -> None:
    """Not measured is not met; without a target there is nothing to meet."""
    assert Claim(what="a", unit="", measured=4.0, target=4.0).met
    assert not Claim(what="a", unit="", measured=1.4, target=1.3, at_least=False).met
    assert Claim(what="a", unit="", measured=None, target=1.0).met is False
    assert Claim(what="a", unit="", measured=5.0).met is None


def test_the_page_shows_what_was_measured_and_no_more(tmp_path: Path) -> None:
    """A measured row appears with its target and machine; a quick one and one never run do not."""
    outcome = Outcome(claims=(Claim(what="speed-up", unit="×", measured=5.25, target=4.0),))
    about = {"date": "2026-01-01", "asked": [], "seconds": 90.0, "machine": machine()}
    file = tmp_path / "benchmarks.json"
    keep(file, "speed", entry(outcome, {**about, "quick": False}))
    keep(file, "two_step", entry(outcome, {**about, "quick": True}))
    text = page(read(file))
    assert "| speed | speed-up | 5.25 × | ≥ 4 | yes |" in text
    assert "| two_step |" not in text
    assert "1.5 minutes" in text
    assert "Nothing has been measured" in page({})


def test_the_documented_page_is_that_of_the_kept_figures() -> None:
    """docs/benchmarks.md is written from docs/benchmarks.json."""
    docs = ROOT / "docs"
    assert (docs / "benchmarks.md").read_text(encoding="utf-8") == page(read(docs / "benchmarks.json"))


def test_rows_are_named_and_a_stranger_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """``--list`` names every row; a name that is none of them is exit 2."""
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(ROWS)
    assert main(["nonsense"]) == 2
    assert "supply_chain" in capsys.readouterr().err


def test_every_row_can_be_imported() -> None:
    """What a row names is there."""
    import importlib

    for row in ROWS.values():
        module, _, function = row.use.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
    assert json.dumps(machine())
