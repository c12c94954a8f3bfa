"""What plain RLlib is given in the speed rows is what ours is given, and bf16 on a CPU trains."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner  # noqa: TID251 - plain RLlib is the subject

from assembly.team_check import Known, accept
from bench.algorithms import Stopwatch, plain_config
from bench.gpu import CPU, CPU_BF16, FILE, GPU_BF16, LARGE, QUICK, TOLERANCES, Curve, differences
from bench.settings import Contest
from rewards.terms import TERMS
from trainers.rllib.algorithm import algorithm_config
from trainers.rllib.runner import BatchedRunner


@pytest.fixture(scope="module")
def plain(supply_chain: Contest) -> MultiAgentEnvRunner:
    return MultiAgentEnvRunner(config=plain_config(supply_chain, envs=2, fragment=24))


def test_plain_rllib_plays_what_ours_plays(supply_chain: Contest, plain: MultiAgentEnvRunner) -> None:
    """The same features and masks, the same networks' shapes, and rewards that reach everybody."""
    episodes = plain.sample(num_episodes=4)
    runner = BatchedRunner(config=_ours(supply_chain))
    ours = runner.sample(num_timesteps=16)[0]
    for name, seat in supply_chain.seats.items():
        theirs = episodes[0].agent_episodes[name].get_observations(0)
        mine = ours.columns[name]["obs"]
        assert {k: v.shape for k, v in theirs.items()} == {k: v.shape[1:] for k, v in mine.items()}
        assert theirs["features"].shape == (seat.spec.features,)
    shapes = [
        {m: {k: v.shape for k, v in module.get_state().items()} for m, module in r.module.items()}
        for r in (plain, runner)
    ]
    assert shapes[0] == shapes[1]
    assert all(e.get_return() != 0 for e in episodes)


def _ours(contest: Contest) -> Any:
    """Each with statistics of its own: an update adds to them."""
    return algorithm_config(contest.build, contest.seats, deepcopy(contest.standardizer))


def test_plain_rllib_learns_from_it(supply_chain: Contest, plain: MultiAgentEnvRunner) -> None:
    """Its own learner makes an update of every policy."""
    learner: Any = plain.config.build_learner(spaces=plain.get_spaces())
    found = learner.update(
        episodes=plain.sample(num_timesteps=64),
        timesteps={"num_env_steps_sampled_lifetime": 64},
        num_epochs=1,
        minibatch_size=32,
    )
    assert set(supply_chain.seats) <= set(found)


def test_an_update_in_bf16_is_nearly_that_in_fp32(supply_chain: Contest) -> None:
    """Autocast on a CPU, the path a GPU takes: the same losses within the tolerance that bench.gpu allows."""
    losses: dict[bool, dict[str, tuple[float, float]]] = {}
    for autocast in (False, True):
        torch.manual_seed(0)
        config = _ours(supply_chain)
        config.training(learner_config_dict={"autocast": autocast})
        runner = BatchedRunner(config=config)
        learner = config.build_learner(spaces=runner.get_spaces())
        weights = learner.get_state(components="rl_module", inference_only=True)
        runner.set_state({"rl_module": weights["rl_module"], "weights_seq_no": 1})
        found = learner.update(
            episodes=runner.sample(),
            timesteps={"num_env_steps_sampled_lifetime": 256},
            num_epochs=1,
            minibatch_size=64,
        )
        losses[autocast] = {n: (found[n]["policy_loss"].peek(), found[n]["vf_loss"].peek()) for n in supply_chain.seats}
    assert losses[True] != losses[False], "bf16 was not used"
    allowed = TOLERANCES[CPU_BF16]
    for name, (policy, value) in losses[False].items():
        assert losses[True][name][0] == pytest.approx(policy, abs=allowed.policy_loss)
        assert losses[True][name][1] == pytest.approx(value, rel=allowed.value_loss)


def curve(**changed: Any) -> Curve:
    values: dict[str, Any] = {
        "returns": (-45.0, -40.0, -38.0), "policy_losses": (-0.01, -0.01, -0.02), "value_losses": (1.0, 0.9, 0.8),
        "sample_s": (1.0,) * 3, "learn_s": (1.0,) * 3, "steps_per_s": (900.0,) * 3,
    }  # fmt: skip
    return Curve(**{**values, **changed})


def test_a_gpu_that_computes_something_else_is_found_out() -> None:
    """An equal curve passes; another first return, a later one too far off, and other losses are each named."""
    allowed = TOLERANCES[CPU_BF16]
    assert differences(curve(), curve(), allowed) == []
    assert "first return" in differences(curve(returns=(-44.0, -40.0, -38.0)), curve(), allowed)[0]
    assert "iteration 3" in differences(curve(returns=(-45.0, -40.0, -20.0)), curve(), allowed)[0]
    assert "value loss" in differences(curve(value_losses=(1.0, 0.9, 0.4)), curve(), allowed)[0]
    assert "policy loss" in differences(curve(policy_losses=(0.3, -0.01, -0.02)), curve(), allowed)[0]
    assert CPU.overrides("[8]")[0] == "resources.gpus=0"


def test_the_gpu_script_asks_for_what_the_file_knows() -> None:
    """Its overrides are accepted: a GPU, bf16, larger networks, tiny sizes."""
    found = accept(FILE, (*GPU_BF16.overrides(LARGE), *QUICK), Known(TERMS)).experiment
    assert (found.resources.gpus, found.resources.autocast) == (1, "bf16")
    assert all(p.hidden == (1024, 1024) for p in found.policies.values() if p.kind == "encoder")


def test_a_stopwatch_counts_calls_only() -> None:
    """It starts again each time it is read."""
    owner = type("Owner", (), {"work": lambda self, n: np.zeros(n)})()
    watch = Stopwatch(owner, "work")
    assert watch.read() == 0.0
    assert len(owner.work(3)) == 3
    assert watch.read() > 0.0
    assert watch.read() == 0.0
