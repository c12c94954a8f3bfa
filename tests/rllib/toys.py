"""Tiny environments and a tiny masked policy, with which the training engine is tried."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from pettingzoo import AECEnv, ParallelEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env

from trainers.rllib.adapter import AECAdapter, ParallelAdapter
from trainers.rllib.connector import FragmentToBatch
from trainers.rllib.learner import RepertoryLearner
from trainers.rllib.runner import BatchedRunner
from trainers.rllib.slots import RUNNER, RunnerSettings

ABC: tuple[str, ...] = ("A", "B", "C")
K = 4
"""Candidates; the last one is always illegal."""


class Relay(AECEnv):
    """A → B → C, ``rounds`` times. Each sees a target among K - 1 and is right if it names it.

    Everybody is paid the number of right answers at the end; with ``step_reward``, 1 for a right one at once, too.

    Args:
        end: ``term``, ``trunc`` or ``mixed`` (B is cut, the others terminate).
        die: A leaves after its first turn.
        early: ``C`` is never asked, and the episode ends after A's first turn.
        missing: the reward of B's first turn is NaN in every third episode.
    """

    metadata = {"name": "relay_v0"}  # noqa: RUF012
    render_mode = None

    def __init__(
        self,
        rounds: int = 1,
        end: str = "term",
        die: bool = False,
        early: bool = False,
        step_reward: bool = False,
        missing: bool = False,
    ) -> None:
        self.possible_agents = list(ABC)
        self.rounds, self.end, self.die, self.early = rounds, end, die, early
        self.step_reward, self.missing = step_reward, missing
        box = gym.spaces.Box(-1.0, 1.0, (K + 2,), np.float32)
        self._seen = gym.spaces.Dict({"observations": box, "action_mask": gym.spaces.Box(0, 1, (K,), np.int8)})
        self._does = gym.spaces.Discrete(K)
        self._mask = np.array([1, 1, 1, 0], np.int8)

    def observation_space(self, agent: str) -> gym.Space:
        return self._seen

    def action_space(self, agent: str) -> gym.Space:
        return self._does

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        self.chance = np.random.default_rng(seed)
        self.lucky = int(self.chance.integers(3))
        self.agents = list(ABC)
        self.targets = dict(zip(ABC, self.chance.integers(K - 1, size=3).tolist(), strict=True))
        self.turn = self.hits = 0
        self.team_return = 0.0
        self.rewards = dict.fromkeys(ABC, 0.0)
        self._cumulative_rewards = dict.fromkeys(ABC, 0.0)
        self.terminations = dict.fromkeys(ABC, False)
        self.truncations = dict.fromkeys(ABC, False)
        self.infos: dict[str, dict[str, Any]] = {a: {} for a in ABC}
        self.agent_selection = "A"

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        seen = np.zeros(K + 2, np.float32)
        seen[self.targets[agent]] = 1.0
        seen[K] = self.turn / (3 * self.rounds)
        seen[K + 1] = self.hits / (3 * self.rounds)
        return {"observations": seen, "action_mask": self._mask}

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        assert action != K - 1, "an illegal action"
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        hit = float(action == self.targets[agent])
        self.hits += hit
        if self.step_reward:
            self.rewards[agent] += hit
        if self.missing and agent == "B" and self.turn == 1 and not self.lucky:
            self.rewards[agent] = float("nan")
        self.targets[agent] = int(self.chance.integers(K - 1))
        self.turn += 1
        if self.die and self.turn == 1:
            self.terminations["A"] = True
        self.agent_selection = self._next(agent)
        if self.turn >= 3 * self.rounds or (self.early and self.turn == 1):
            self._end()
        self._accumulate_rewards()
        self._deads_step_first()

    def _next(self, agent: str) -> str:
        order = list(ABC)
        following = order[order.index(agent) + 1 :] + order[: order.index(agent) + 1]
        return next(a for a in following if a in self.agents and not self.terminations[a])

    def _end(self) -> None:
        for agent in self.agents:
            self.rewards[agent] += self.hits
            cut = self.end == "trunc" or (self.end == "mixed" and agent == "B")
            if not self.terminations[agent]:
                (self.truncations if cut else self.terminations)[agent] = True
        self.team_return = self.hits

    def close(self) -> None:
        pass


class Chorus(ParallelEnv):
    """Three at once, ``rounds`` rounds, each paid for naming its own target. ``kind`` is the form of the actions."""

    metadata = {"name": "chorus_v0"}  # noqa: RUF012
    render_mode = None

    def __init__(self, rounds: int = 3, end: str = "term", die: bool = False, kind: str = "discrete") -> None:
        self.possible_agents = list(ABC)
        self.rounds, self.end, self.die, self.kind = rounds, end, die, kind
        self._seen = gym.spaces.Box(-1.0, 1.0, (K + 1,), np.float32)
        self._does = {
            "discrete": gym.spaces.Discrete(K - 1),
            "multi": gym.spaces.MultiDiscrete([K - 1, 2]),
            "box": gym.spaces.Box(np.float32(0.0), np.float32(10.0), (2,)),
        }[kind]

    def observation_space(self, agent: str) -> gym.Space:
        return self._seen

    def action_space(self, agent: str) -> gym.Space:
        return self._does

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[dict, dict]:
        self.chance = np.random.default_rng(seed)
        self.agents, self.round = list(ABC), 0
        self._aim()
        return self._looks(), {a: {} for a in ABC}

    def _aim(self) -> None:
        self.targets = dict(zip(ABC, self.chance.integers(K - 1, size=3).tolist(), strict=True))

    def _looks(self) -> dict[str, np.ndarray]:
        seen = {a: np.zeros(K + 1, np.float32) for a in self.agents}
        for agent, vector in seen.items():
            vector[self.targets[agent]] = 1.0
            vector[K] = self.round / self.rounds
        return seen

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        rewards = {a: self._worth(a, action) for a, action in actions.items()}
        self.round += 1
        self._aim()
        over = self.round >= self.rounds
        leaves = {a: self.die and self.round == 1 and a == "A" for a in actions}
        cut = {a: over and (self.end == "trunc" or (self.end == "mixed" and a == "B")) for a in actions}
        terminated = {a: leaves[a] or (over and not cut[a]) for a in actions}
        seen = self._looks()
        self.agents = [a for a in self.agents if not (terminated[a] or cut[a])]
        return seen, rewards, terminated, cut, {a: {} for a in actions}

    def _worth(self, agent: str, action: Any) -> float:
        if self.kind == "box":
            assert self._does.contains(action), action
            return -float(abs(action[0] / 10.0 - self.targets[agent] / K))
        first = action[0] if self.kind == "multi" else action
        return float(first == self.targets[agent])

    def close(self) -> None:
        pass


class TinyPolicy(TorchRLModule, ValueFunctionAPI):
    """Two small nets; the mask makes what is illegal impossible; a central critic reads ``state``."""

    def setup(self) -> None:
        spaces = self.observation_space.spaces
        self.central = "state" in spaces
        seen = spaces["state" if self.central else "features"].shape[0]
        self.pi = _net(spaces["features"].shape[0], self._outputs())
        self.vf = _net(seen, 1)

    def _outputs(self) -> int:
        if isinstance(self.action_space, gym.spaces.Discrete):
            return int(self.action_space.n)
        if isinstance(self.action_space, gym.spaces.MultiDiscrete):
            from ray.rllib.core.distribution.torch.torch_distribution import TorchMultiCategorical

            sizes = self.action_space.nvec.tolist()
            family: Any = TorchMultiCategorical
            self.action_dist_cls = family.get_partial_dist_cls(input_lens=sizes)
            return sum(sizes)
        return 2 * self.action_space.shape[0]

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        out = self.pi(seen["features"])
        if "action_mask" in seen:
            out = out.masked_fill(~seen["action_mask"], -1e9)
        return {Columns.ACTION_DIST_INPUTS: out}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        return self.vf(batch[Columns.OBS]["state" if self.central else "features"]).squeeze(-1)


def _net(inputs: int, outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, outputs),
    )


class Welford:
    """Running mean and variance per key: a standardizer as the connector asks for."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, float, float]] = {}

    def transform(self, key: str, values: np.ndarray) -> np.ndarray:
        count, mean, squares = self.known.get(key, (0, 0.0, 0.0))
        std = (squares / count) ** 0.5 if count else 1.0
        return ((values - mean) / (std or 1.0)).astype(values.dtype)

    def update(self, key: str, values: np.ndarray) -> None:
        count, mean, squares = self.known.get(key, (0, 0.0, 0.0))
        for value in values.tolist():
            count += 1
            step = value - mean
            mean += step / count
            squares += step * (value - mean)
        self.known[key] = (count, mean, squares)

    def state(self) -> dict[str, Any]:
        return {"known": dict(self.known)}

    def load(self, state: dict[str, Any]) -> None:
        self.known = {k: tuple(v) for k, v in state["known"].items()}


def _register() -> None:
    """Tell RLlib the toys by name, every time anew: it forgets them when a Ray of this process has been shut down."""
    register_env("relay", lambda c: AECAdapter(Relay(**{k: v for k, v in c.items() if k != RUNNER})))
    register_env("chorus", lambda c: ParallelAdapter(Chorus(**{k: v for k, v in c.items() if k != RUNNER})))


def config(
    env: str = "relay",
    *,
    batch: int = 384,
    envs: int = 4,
    settings: RunnerSettings | None = None,
    standardizer: Any = None,
    **env_config: Any,
) -> Any:
    """A small PPO on one of the toys, with all parts of the engine in place; a policy for each agent."""
    _register()
    one: Any = (
        AECAdapter(Relay()) if env == "relay" else ParallelAdapter(Chorus(kind=env_config.get("kind", "discrete")))
    )
    settings = settings or RunnerSettings(seed=1)
    specs = {a: RLModuleSpec(TinyPolicy, _arrays(one, a, settings), one.action_spaces[a]) for a in ABC}
    return (
        PPOConfig()
        .environment(env, env_config={RUNNER: settings, **env_config}, disable_env_checking=True)
        .debugging(seed=7)
        .multi_agent(policies=set(ABC), policy_mapping_fn=own_policy)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))
        .env_runners(
            env_runner_cls=BatchedRunner,
            num_env_runners=0,
            num_envs_per_env_runner=envs,
            batch_mode="complete_episodes",
        )
        .learners(
            learner_class=RepertoryLearner,
            add_default_connectors_to_learner_pipeline=False,
            learner_connector=lambda o, a: FragmentToBatch(o, a, gamma=0.99, lambda_=0.95, standardizer=standardizer),
        )
        .training(
            train_batch_size=batch,
            minibatch_size=64,
            num_epochs=4,
            lr=1e-3,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=0.01,
            use_kl_loss=False,
        )
    )


def own_policy(agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Every agent has a policy of its own."""
    return agent


def _arrays(env: Any, agent: str, settings: RunnerSettings) -> gym.spaces.Dict:
    """The space of what the policy sees."""
    space: Any = env.observation_spaces[agent]
    box: Any = space["observations"] if isinstance(space, gym.spaces.Dict) else space
    spaces = {"features": box}
    if isinstance(space, gym.spaces.Dict):
        spaces["action_mask"] = gym.spaces.Box(0, 1, (K,), np.int8)
    if agent in settings.central:
        spaces["state"] = gym.spaces.Box(-1.0, 1.0, (3 * box.shape[0],), np.float32)
    return gym.spaces.Dict(spaces)


class Company:
    """A runner and a learner that take turns as in RLlib's PPO, without Ray."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.runner = BatchedRunner(config=config)
        self.learner: Any = config.build_learner(spaces=self.runner.get_spaces())
        self.steps = 0
        self.returns: list[float] = []
        self.sync()

    def state(self) -> dict[str, Any]:
        """All of it, as a checkpoint would hold it."""
        return {"runner": self.runner.get_state(), "learner": self.learner.get_state(), "steps": self.steps}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.learner.set_state(state["learner"])
        self.runner.set_state(state["runner"])
        self.steps = state["steps"]
        self.sync()

    def sync(self) -> None:
        """Give the runner the learner's weights."""
        state = self.learner.get_state(components="rl_module", inference_only=True)
        self.runner.set_state({"rl_module": state["rl_module"], "weights_seq_no": state["weights_seq_no"]})

    def train(self) -> Any:
        """One iteration; the learner's metrics."""
        fragments = self.runner.sample()
        self.steps += sum(map(len, fragments))
        self.returns.append(float(self.runner.get_metrics()["episode_return_mean"].peek()))
        found = self.learner.update(
            episodes=fragments,
            timesteps={"num_env_steps_sampled_lifetime": self.steps},
            num_epochs=self.config.num_epochs,
            minibatch_size=self.config.minibatch_size,
            shuffle_batch_per_epoch=self.config.shuffle_batch_per_epoch,
        )
        self.sync()
        return found
