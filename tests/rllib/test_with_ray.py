"""The same under Ray: several runners, a runner that is killed, checkpoints of RLlib's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from tests.conftest import WaitUntil
from tests.rllib.toys import ABC, Welford, config

pytestmark = [pytest.mark.usefixtures("ray_local"), pytest.mark.timeout(600)]


def built(runners: int = 2, **asked: Any) -> Any:
    made = config(rounds=2, batch=96, standardizer=Welford(), **asked)
    made.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5)
    return made.fault_tolerance(restart_failed_env_runners=True).build_algo()


def known(algo: Any) -> dict[str, int]:
    """Samples that the standardizer has seen, by agent."""
    statistics = algo.learner_group._learner.fragment_to_batch.standardizer.known
    return {agent: count for agent, (count, _, _) in statistics.items()}


def opened(algo: Any) -> list[int]:
    return algo.env_runner_group.foreach_env_runner(lambda r: r._opened, local_env_runner=False)


def hashes(algo: Any) -> list[dict[str, str]]:
    return algo.env_runner_group.foreach_env_runner(lambda r: r.policy_hashes(), local_env_runner=False)


def lifetime(result: Any) -> dict[str, int]:
    return {a: int(n) for a, n in result["env_runners"]["num_agent_steps_sampled_lifetime"].items()}


def test_two_runners_lose_nothing_and_outlive_each_other(wait_until: WaitUntil, tmp_path: Path) -> None:
    """Steps and samples are counted once, weights are the learner's, a killed runner comes back and repeats nothing."""
    algo = built()
    try:
        algo.train()
        result = algo.train()
        assert result["env_runners"]["num_env_steps_sampled_lifetime"] == 2 * 96
        assert known(algo) == lifetime(result) == dict.fromkeys(ABC, 64)
        assert hashes(algo) == [algo.learner_group._learner.policy_hashes()] * 2
        assert opened(algo) == [16, 16]

        group = algo.env_runner_group
        ray.kill(group._worker_manager.actors()[1], no_restart=False)
        algo.train()
        wait_until(lambda: _trained_with_two(algo), "the killed runner to be back")
        result = algo.train()
        assert known(algo) == lifetime(result)
        assert result["env_runners"]["num_env_steps_sampled_lifetime"] == 3 * lifetime(result)["A"]
        assert max(opened(algo)) > 2 * 96
        assert len({h for each in hashes(algo) for h in each.items()}) == 3

        algo.save_to_path(str(tmp_path / "checkpoint"))
    finally:
        algo.stop()

    again = built()
    try:
        again.restore_from_path(str(tmp_path / "checkpoint"))
        assert known(again) == known(algo)
        assert min(opened(again)) >= result["env_runners"]["num_env_steps_sampled_lifetime"]
    finally:
        again.stop()


def _trained_with_two(algo: Any) -> bool:
    algo.train()
    return algo.env_runner_group.num_healthy_remote_workers() == 2


def test_a_checkpoint_of_rllib_resumes_exactly(tmp_path: Path) -> None:
    """With one process and complete episodes, N + N iterations over a checkpoint are 2N, bit for bit."""
    whole = built(runners=0)
    for _ in range(2):
        whole.train()
    whole.save_to_path(str(tmp_path / "checkpoint"))
    expected = [whole.train()["env_runners"]["episode_return_mean"] for _ in range(2)]
    other = built(runners=0)
    other.restore_from_path(str(tmp_path / "checkpoint"))
    got = [other.train() for _ in range(2)]
    assert [r["env_runners"]["episode_return_mean"] for r in got] == expected
    assert got[-1]["training_iteration"] == 4
    assert got[-1]["env_runners"]["num_env_steps_sampled_lifetime"] == 4 * 96
    mine, theirs = (a.learner_group.get_state()["learner"] for a in (other, whole))
    for mid in ABC:
        for name, weights in theirs["rl_module"][mid].items():
            np.testing.assert_array_equal(weights, mine["rl_module"][mid][name])
    assert mine["standardizer"] == theirs["standardizer"]
    whole.stop()
    other.stop()
