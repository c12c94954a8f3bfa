"""The two-armed bandit: its pay is what is said, and a tiny language model finds the better arm by trying."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assembly.build import Build
from assembly.loading import load
from envs.bandit import CHANCE, PRIZE_USD, SURE_USD, team
from envs.session import Session
from runtime.errors import TeamError
from runtime.records import ToolCall
from trainers.evaluate import try_out
from trainers.lm_prepare import prompts
from trainers.measure import measure
from trainers.rllib.algorithm import algorithm_config, seats

FILE = Path(__file__).parents[2] / "experiments" / "bandit.yaml"


def pulled(arm: str, episodes: int = 2000) -> list[float]:
    bandit = team()
    assert bandit.generate
    won: list[float] = []
    for episode in range(episodes):
        session = Session(bandit, bandit.generate("train", 1, episode), clock=lambda: 0.0)
        session.act("gambler", ToolCall(tool="pull", args={"arm": arm}))
        assert session.success == (arm == "dragon")
        won.append(float(session.outcome["won_usd"]))
    return won


def test_each_arm_pays_what_is_said() -> None:
    """One a little every time, the other much one time in four."""
    assert set(pulled("phoenix", 50)) == {SURE_USD}
    seldom = pulled("dragon")
    assert set(seldom) == {0.0, PRIZE_USD}
    assert np.mean(seldom) == pytest.approx(CHANCE * PRIZE_USD, abs=0.03)


def test_the_arms_have_the_names_they_are_given() -> None:
    """Two different ones."""
    named = team("b", "a")
    assert named.generate
    seen = Session(named, named.generate("train", 1, 0)).observe("gambler")
    assert [c.args["arm"] for c in seen.candidates] == ["a", "b"]
    with pytest.raises(TeamError, match="both arms are called 'a'"):
        team("a", "a")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_tiny_language_model_pulls_the_better_arm_nearly_always(tmp_path: Path) -> None:
    """At least 95 of 100 times, after 10,000 pulls; it began with half."""
    build = Build(load(FILE), FILE.parent)
    seated = seats(build, prompts(build, measure(build, 100).texts, tmp_path))
    config: Any = algorithm_config(build, seated, build.standardizer())
    runner = config.env_runner_cls(config=config)
    learner = config.build_learner(spaces=runner.get_spaces())
    steps = 0

    def share() -> float:
        """How often the better arm is pulled, drawing as in training."""
        fragment = runner.sample(num_timesteps=400)[0]
        return float(np.mean(fragment.columns["gambler"]["actions"] == 0))

    def sync() -> None:
        runner.set_state({"rl_module": learner.get_state(components="rl_module", inference_only=True)["rl_module"]})

    sync()
    assert 0.2 < share() < 0.8
    for _ in range(10):
        fragments = runner.sample(num_timesteps=1000)
        steps += 1000
        learner.update(
            episodes=fragments,
            num_epochs=2,
            minibatch_size=128,
            timesteps={"num_env_steps_sampled_lifetime": steps},
        )
        sync()
    assert share() >= 0.95
    weights = learner.get_state(components="rl_module")["rl_module"]["gambler"]
    seat = seated["gambler"]
    tried = try_out(build, {"gambler": seat.policy(seat.actor(weights))}, range(200))
    assert tried.successes / tried.judged >= 0.95
