"""Sampling: nothing lost or made up, the same decisions whatever the batch, and no silent ignoring."""

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns

from tests.rllib.toys import ABC, K, config
from trainers.rllib.fragment import AGENT, Fragment
from trainers.rllib.refusals import Unsupported
from trainers.rllib.runner import BatchedRunner
from trainers.rllib.slots import RunnerSettings


def runner(env: str = "relay", mode: str = "complete_episodes", fragment: Any = "auto", **asked: Any) -> BatchedRunner:
    made = config(env, **asked).env_runners(batch_mode=mode, rollout_fragment_length=fragment)
    return BatchedRunner(config=made)


def real(fragment: Fragment, column: str) -> np.ndarray:
    """A column of all modules' real rows."""
    return np.concatenate([c[column][c[Columns.LOSS_MASK]] for c in fragment.columns.values()])


def figure(metrics: Any, *keys: str) -> float:
    for key in keys:
        metrics = metrics[key]
    return float(metrics.peek() if hasattr(metrics, "peek") else metrics)


CASES: list[dict[str, Any]] = [
    {"rounds": 4, "step_reward": True},
    {"rounds": 5, "step_reward": True, "end": "trunc"},
    {"rounds": 4, "step_reward": True, "end": "mixed", "die": True},
    {"env": "chorus", "die": True, "end": "mixed"},
]


@pytest.mark.parametrize("case", CASES)
def test_no_step_and_no_reward_is_lost_over_fragments(case: dict[str, Any]) -> None:
    """However short the fragments: decisions and rewards handed over or still waiting are those that took place."""
    it = runner(mode="truncate_episodes", fragment=7, **case)
    rows, rewards, returns = 0, 0.0, 0.0
    turns: Counter[str] = Counter()
    for _ in range(30):
        (fragment,) = it.sample()
        rows += fragment.agent_steps()
        rewards += float(real(fragment, Columns.REWARDS).sum())
        returns += sum(sum(f.returns.values()) for f in it._finished)
        for finished in it._finished:
            turns.update(finished.turns)
        it._finished = []
    rollout = it._rollout
    assert rollout is not None
    open_ = [s for s in rollout.slots if s is not None]
    waiting = [(rollout.mapping[a], r) for s in open_ for a, rr in s.rows.items() for r in rr]
    assert rows + len(waiting) == turns.total() + sum(s.turns.total() for s in open_)
    held = sum(rollout._rows[mid].rewards[r] for mid, r in waiting)
    assert rewards + held == pytest.approx(returns + sum(sum(s.returns.values()) for s in open_))


def test_complete_episodes_leave_nothing_open() -> None:
    """A call ends with no episode in flight, and with at least as many steps as asked for."""
    it = runner(rounds=2, batch=100, envs=8)
    (fragment,) = it.sample()
    assert it._rollout is not None
    assert not any(it._rollout.slots)
    assert 100 <= len(fragment) < 100 + 8 * 6
    assert len(fragment) % 6 == 0
    assert real(fragment, Columns.TERMINATEDS).sum() == len(fragment) / 6 * 3


def test_a_number_of_episodes_is_met_exactly() -> None:
    """Evaluation on n episodes plays n, no more for the envs there happen to be."""
    it = runner(envs=8)
    it.sample(num_episodes=5)
    assert figure(it.get_metrics(), "num_episodes") == 5


def decisions(envs: int, **asked: Any) -> dict[int, list[tuple[str, int]]]:
    """What each agent did in each episode of the first 24."""
    it = runner(envs=envs, rounds=2, batch=24 * 6, settings=RunnerSettings(seed=3), **asked)
    assert it._rollout is not None
    did: dict[int, list[tuple[str, int]]] = {}
    for adapter in it._rollout.envs:
        adapter.step = watched(adapter, did)  # type: ignore[method-assign]
    it.sample(num_episodes=24)
    return did


def watched(adapter: Any, did: dict[int, list[tuple[str, int]]]) -> Any:
    step = adapter.step

    def noting(actions: dict[str, int]) -> Any:
        did.setdefault(adapter._key[1], []).extend(actions.items())
        return step(actions)

    return noting


def test_decisions_do_not_depend_on_the_number_of_environments() -> None:
    """Chance hangs on seed, episode, agent and turn: one environment or eight, each episode is the same."""
    alone = decisions(1)
    assert alone == decisions(8)
    assert len({tuple(d) for d in alone.values()}) > 12


def test_masked_actions_are_never_chosen() -> None:
    """The environment raises on an illegal action, and so does the runner before it; 3,000 decisions pass."""
    (fragment,) = runner(batch=3000, envs=16).sample()
    assert set(real(fragment, Columns.ACTIONS).tolist()) == set(range(K - 1))


def test_greedy_decisions_are_the_likeliest() -> None:
    """explore=False takes the best action, without chance."""
    it = runner()
    (fragment,) = it.sample(num_episodes=20, explore=False)
    for mid, columns in fragment.columns.items():
        import torch

        inputs = {k: torch.from_numpy(v) for k, v in columns[Columns.OBS].items()}
        module: Any = it.module
        best = module[mid]._forward({Columns.OBS: inputs})[Columns.ACTION_DIST_INPUTS].argmax(1)
        assert best.tolist() == columns[Columns.ACTIONS].tolist()


@pytest.mark.parametrize("mode", ["complete_episodes", "truncate_episodes"])
def test_a_missing_reward_drops_what_hangs_on_it(mode: str) -> None:
    """NaN is not zero: the episode's decisions leave the batch, its return no mean, and all of it is counted."""
    it = runner(mode=mode, fragment=30, rounds=2, missing=True, batch=240)
    (fragment,) = it.sample()
    found = it.get_metrics()
    missing = figure(found, "missing_rewards")
    assert missing > 2
    assert np.isfinite(real(fragment, Columns.REWARDS)).all()
    if mode == "complete_episodes":
        assert figure(found, "dropped_episodes") == missing
        assert fragment.agent_steps() == len(fragment) - 6 * missing
        assert figure(found, "dropped_agent_steps") == 6 * missing
    assert np.isfinite(figure(found, "episode_return_mean"))


def test_an_agent_that_is_never_asked_has_no_rows() -> None:
    """A module without decisions is simply not in the fragment."""
    (fragment,) = runner(early=True).sample()
    assert set(fragment.columns) == {"A"}


def test_rows_say_whose_they_are() -> None:
    """Agents that share a policy keep their own trajectories and their own reward statistics."""
    made = config(rounds=2).multi_agent(policies={"A"}, policy_mapping_fn=lambda agent, *a, **k: "A")
    del made.rl_module_spec.rl_module_specs["B"], made.rl_module_spec.rl_module_specs["C"]
    (fragment,) = BatchedRunner(config=made).sample(num_episodes=4)
    columns = fragment.columns["A"]
    assert fragment.agents == ABC
    assert Counter(columns[AGENT].tolist()) == {0: 8, 1: 8, 2: 8}
    assert columns[Columns.TERMINATEDS].sum() == 12


def test_returns_are_reported_per_agent_and_for_the_team() -> None:
    """RLlib's keys, and the environment's own idea of the team's return."""
    it = runner(rounds=1, batch=120)
    it.sample()
    found = it.get_metrics()
    team = figure(found, "team_return_mean")
    assert figure(found, "agent_episode_returns_mean", "B") == pytest.approx(team)
    assert figure(found, "episode_return_mean") == pytest.approx(3 * team)
    assert figure(found, "num_env_steps_sampled") == 120


def test_box_actions_reach_the_environment_in_its_range() -> None:
    """What is stored is the policy's raw action; what is played lies in the space (the environment checks)."""
    (fragment,) = runner("chorus", kind="box").sample()
    assert real(fragment, Columns.ACTIONS).min() < 0.0
    space = gym.spaces.Box(np.float32(0.0), np.float32(10.0), (2,))
    assert space.contains(np.full(2, 5.0, np.float32))


def test_a_central_critic_sees_what_everybody_saw_last() -> None:
    """``state`` holds all agents' latest features, zeros before their first turn."""
    central = RunnerSettings(seed=1, central=frozenset({"B"}))
    (fragment,) = runner(settings=central, envs=1).sample(num_episodes=1)
    seen = {mid: c[Columns.OBS] for mid, c in fragment.columns.items()}
    width = K + 2
    state = seen["B"]["state"][0]
    np.testing.assert_array_equal(state[:width], seen["A"]["features"][0])
    np.testing.assert_array_equal(state[width : 2 * width], seen["B"]["features"][0])
    np.testing.assert_array_equal(state[2 * width :], np.zeros(width))
    assert "state" not in seen["A"]


class Watching(RLlibCallback):
    def on_episode_end(self, **kwargs: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.env_runners(env_to_module_connector=lambda *a: None), "env_to_module_connector"),
        (lambda c: c.env_runners(module_to_env_connector=lambda *a: None), "module_to_env_connector"),
        (lambda c: c.callbacks(Watching), "on_episode_end"),
        (lambda c: c.callbacks(on_episode_start=lambda **k: None), "on_episode_start"),
        (lambda c: c.learners(num_learners=2), "num_learners"),
        (lambda c: c.multi_agent(count_steps_by="agent_steps"), "count_steps_by"),
        (lambda c: c.multi_agent(policy_mapping_fn=lambda a, e, **k: e.id_), "reads the episode"),
    ],
)
def test_what_is_not_supported_is_refused(change: Any, named: str) -> None:
    """Nothing that a configuration asks for is silently left out."""
    with pytest.raises(Unsupported, match=named):
        BatchedRunner(config=change(config()))


def test_random_actions_are_refused() -> None:
    """A uniform policy can play; RLlib's shortcut would step around masks."""
    with pytest.raises(Unsupported, match="random_actions"):
        runner().sample(random_actions=True)


def test_counting_episodes_would_lose_open_trajectories() -> None:
    """In truncated mode, a call for whole episodes must say that what is open may go."""
    it = runner(mode="truncate_episodes", fragment=7, rounds=4)
    it.sample()
    with pytest.raises(Unsupported, match="force_reset"):
        it.sample(num_episodes=2)
    it.sample(num_episodes=2, force_reset=True)


def test_a_runner_in_another_ones_place_repeats_no_episode() -> None:
    """After S env steps of all workers it goes on past episode S of its own."""
    made = config()
    replaced = BatchedRunner(config=made, worker_index=1, num_workers=2)
    replaced.set_state({"num_env_steps_sampled_lifetime": 500, "episodes": {"worker": 0, "opened": 0}})
    assert replaced._opened == 500
    replaced.set_state({"num_env_steps_sampled_lifetime": 900})
    assert replaced._opened == 500
