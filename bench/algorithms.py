"""The two contestants that are RLlib algorithms: ours, and RLlib as it comes."""

import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from bench.settings import Contest, Lap, with_envs
from trainers.rllib.adapter import Adapter
from trainers.rllib.algorithm import UNBOUNDED, Seat, make_adapter
from trainers.rllib.engine import Engine
from trainers.rllib.module import EncoderModule

PLAIN = "bench_plain"


class Stopwatch:
    """Adds up the time of a method's calls: the algorithm's own timers are smoothed over iterations."""

    def __init__(self, owner: Any, method: str) -> None:
        self.seconds = 0.0
        timed: Callable[..., Any] = getattr(owner, method)

        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return timed(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - began

        setattr(owner, method, run)

    def read(self) -> float:
        """Seconds since the last time, then start again."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


class _Timed:
    """An algorithm whose sampling and learning are timed."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self._sampling = Stopwatch(algorithm.env_runner, "sample")
        self._learning = Stopwatch(algorithm.learner_group, "update")

    def _iterate(self) -> int:
        raise NotImplementedError

    def lap(self) -> Lap:
        """One iteration."""
        began = time.perf_counter()
        steps = self._iterate()
        return Lap(steps, self._sampling.read(), self._learning.read(), time.perf_counter() - began)

    def close(self) -> None:
        """Stop the algorithm."""
        self.algorithm.stop()


class Ours(_Timed):
    """This project's engine with all it does in an iteration: records, tallies, checks of weights."""

    def __init__(self, contest: Contest, envs: int) -> None:
        given = with_envs(contest, envs)
        self.engine = Engine(given.build, given.seats, given.standardizer)
        super().__init__(self.engine.algorithm)

    def _iterate(self) -> int:
        return self.engine.iterate().env_steps


class Plain(_Timed):
    """RLlib's MultiAgentEnvRunner, stock connectors and PPOTorchLearner, fragments left to RLlib."""

    fragment: int | str = "auto"
    """Steps that each environment takes in one call of ``sample``."""

    def __init__(self, contest: Contest, envs: int) -> None:
        super().__init__(plain_config(contest, envs, self.fragment).build_algo())

    def _iterate(self) -> int:
        return int(self.algorithm.train()["env_runners"]["num_env_steps_sampled"])


class PlainInPieces(Plain):
    """The same with short fragments, which spare RLlib most of its quadratic work on long ones."""

    fragment = 25


class FeaturizingEnv(MultiAgentEnv):
    """An adapted environment that featurizes: RLlib sees ``{"features", "action_mask"}``, as our policies do."""

    numbers = count()
    """Numbers of the episodes of this process: no two environments play the same one."""

    def __init__(self, adapter: Adapter, seats: Mapping[str, Seat]) -> None:
        super().__init__()
        self.adapter, self.by_agent = adapter, seats
        self.possible_agents = list(adapter.seats)
        self.agents = list(adapter.seats)
        self.observation_spaces = {a: seats[a].observations for a in adapter.seats}
        self.action_spaces = {a: seats[a].actions for a in adapter.seats}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Open the next episode."""
        seen, infos = self.adapter.reset(seed=0, options={"episode": next(self.numbers)})
        return self._features(seen), infos

    def step(self, action_dict: Any) -> Any:
        """A turn."""
        seen, *rest = self.adapter.step(action_dict)
        return self._features(seen), *rest

    def _features(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        return {a: {k: v[0] for k, v in self.by_agent[a].featurize([o]).items()} for a, o in seen.items()}


_PLAYED: dict[str, Contest] = {}
"""What environments are made from; RLlib's settings would have to pickle it."""


def _create(config: Any) -> FeaturizingEnv:
    contest = _PLAYED[config["contest"]]
    policy_of = contest.build.policy_of
    by_agent = {a: contest.seats[policy_of[a]] for a in contest.build.learners}
    return FeaturizingEnv(make_adapter(contest.build, "train"), by_agent)


def plain_config(contest: Contest, envs: int, fragment: int | str) -> PPOConfig:
    """RLlib's own PPO on the contest."""
    register_env(PLAIN, _create)
    _PLAYED[contest.build.experiment.name] = contest
    mapping, ppo = dict(contest.build.policy_of), contest.ppo
    specs = {
        n: RLModuleSpec(EncoderModule, s.observations, s.actions, model_config={"spec": s.spec.as_json()})
        for n, s in contest.seats.items()
    }
    return (
        PPOConfig()
        .environment(PLAIN, env_config={"contest": contest.build.experiment.name}, disable_env_checking=True)
        .debugging(seed=contest.build.experiment.seed, log_level="ERROR")
        .multi_agent(policies=set(specs), policy_mapping_fn=lambda agent, *_, **__: mapping[agent])
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs, rollout_fragment_length=fragment)
        .learners(num_learners=0, num_gpus_per_learner=0)
        .training(
            train_batch_size=ppo.train_batch_size,
            minibatch_size=ppo.minibatch_size,
            num_epochs=ppo.num_epochs,
            lr=ppo.lr[0],
            gamma=ppo.gamma,
            lambda_=ppo.lambda_,
            clip_param=ppo.clip_param,
            vf_clip_param=UNBOUNDED,
            vf_loss_coeff=ppo.vf_loss_coeff,
            entropy_coeff=ppo.entropy_coeff[0],
            grad_clip=ppo.grad_clip,
            grad_clip_by="global_norm",
            use_kl_loss=False,
        )
    )
