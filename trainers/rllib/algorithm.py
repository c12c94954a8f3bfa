"""An experiment as an RLlib PPO algorithm: stock Algorithm and checkpoints, our runner, connector and learner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.spaces.space_utils import unsquash_action
from ray.tune.registry import register_env

from assembly.build import Build
from assembly.experiment import PPO, CausalLM, Experiment, Stop
from policies.encoder import Actor, EncoderSpec
from policies.lm.featurize import PromptFeaturizer
from policies.playing import EncoderPolicy, Playable
from trainers.rllib.adapter import Adapter, AECAdapter, ParallelAdapter
from trainers.rllib.connector import FragmentToBatch
from trainers.rllib.faults import TellingRunner
from trainers.rllib.learner import RepertoryLearner
from trainers.rllib.lm_learner import LMLearner
from trainers.rllib.lm_seat import LMSeat, lm_seat
from trainers.rllib.module import EncoderModule
from trainers.rllib.slots import RUNNER, Featurizer, Flatten, RunnerSettings
from trainers.seats import seated

ENV = "repertory"
EXPERIMENT = "experiment"
FOLDER = "folder"
"""The environment's name, and the keys of its configuration."""

UNBOUNDED = 1e9
"""Stands for "no bound" where RLlib wants a number."""
RESTARTS = 10
"""How often each sampler may be started again in a run: its machine is taken away, or memory is short."""
SHARE: Any = 0.5
"""CPUs that Ray sets aside for a process: samplers wait while learners learn. RLlib types it as a whole number."""
SCHEDULE_POINTS = 32
"""Pieces of the line that stands for a quadratic schedule."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a learning policy needs to be built: how it sees and the shape of its networks."""

    spec: EncoderSpec
    featurize: Featurizer
    observations: gym.spaces.Dict
    actions: gym.Space[Any]

    @property
    def to_action(self) -> Callable[[np.ndarray[Any, Any]], Any] | None:
        """From the network's outputs to the likeliest action, where actions are not a single choice from 0."""
        space = self.actions
        if isinstance(space, gym.spaces.Box):
            return lambda row: unsquash_action(row[: len(row) // 2].reshape(space.shape), space)
        if isinstance(space, gym.spaces.MultiDiscrete):
            cuts = np.cumsum(space.nvec)[:-1]
            return lambda row: np.array([part.argmax() for part in np.split(row, cuts)])
        if isinstance(space, gym.spaces.Discrete) and space.start:
            return lambda row: int(row.argmax() + space.start)
        return None

    def module(self) -> RLModuleSpec:
        """The policy as RLlib builds it."""
        return RLModuleSpec(
            module_class=EncoderModule,
            observation_space=self.observations,
            action_space=self.actions,
            model_config={"spec": self.spec.as_json()},
        )

    def actor(self, weights: Mapping[str, Any] | None = None) -> Actor:
        """The network that decides, with these weights of its module, or as it is before training."""
        made = Actor(self.spec)
        if weights is not None:
            own = {k.removeprefix("pi."): v for k, v in weights.items() if k.startswith("pi.")}
            made.load_state_dict({k: _tensor(v) for k, v in own.items()})
        return made

    def policy(self, actor: Any) -> Playable:
        """The network at play."""
        return EncoderPolicy(actor, self.featurize, self.to_action)


AnySeat = Seat | LMSeat


def _tensor(value: Any) -> Any:
    import torch

    return torch.as_tensor(value)


def make_adapter(build: Build, split: str) -> Adapter:
    """The experiment's environment as RLlib sees it: only learners have turns."""
    env = seated(build.env(split), build.teammates)
    return ParallelAdapter(env) if build.parallel else AECAdapter(env)


_BUILDS: dict[str, Build] = {}
"""The builds of this process, by experiment: a team is loaded once, not once an environment."""


def create_env(config: Mapping[str, Any]) -> Adapter:
    """RLlib's environment creator, in whatever process."""
    text, folder = config[EXPERIMENT], config[FOLDER]
    if text not in _BUILDS:
        _BUILDS[text] = Build(Experiment.model_validate_json(text), Path(folder))
    return make_adapter(_BUILDS[text], "train")


def seats(build: Build, features: Mapping[str, Featurizer | None]) -> dict[str, AnySeat]:
    """A seat a learning policy. ``features`` has how each policy sees; None: its observations are flattened."""
    env = make_adapter(build, "train")
    sight = {n: features[n] or Flatten(env.observation_spaces[_first(build, n)]) for n in build.learned}
    own = {n: _width(f, env.observation_spaces[_first(build, n)]) for n, f in sight.items()}
    whole = sum(own[build.policy_of[a]] for a in build.learners)
    return {n: _seat(build, env, n, sight[n], (own[n], whole)) for n in build.learned}


def _first(build: Build, policy: str) -> str:
    return next(a for a in build.learners if build.policy_of[a] == policy)


def _width(featurize: Featurizer, space: gym.Space[Any]) -> int:
    """Length of the feature vector; 0 for what reads text as it is."""
    if isinstance(featurize, PromptFeaturizer):
        return 0
    return int(featurize([space.sample()])["features"].shape[1])


def _seat(build: Build, env: Adapter, name: str, featurize: Featurizer, widths: tuple[int, int]) -> AnySeat:
    encoder, agent = build.learned[name], _first(build, name)
    if isinstance(encoder, CausalLM):
        assert isinstance(featurize, PromptFeaturizer)
        device = "cuda" if gpus(build.experiment) else "cpu"
        return lm_seat(encoder, featurize, env.action_spaces[agent], device)
    actions, (own, whole) = env.action_spaces[agent], widths
    outputs, gaussian = _outputs(actions)
    central = encoder.critic == "central"
    boxes: dict[str, gym.Space[Any]] = {"features": gym.spaces.Box(-np.inf, np.inf, (own,), np.float32)}
    if "action_mask" in featurize([env.observation_spaces[agent].sample()]):
        boxes["action_mask"] = _mask_space(outputs)
    if central:
        boxes["state"] = gym.spaces.Box(-np.inf, np.inf, (whole,), np.float32)
    spec = EncoderSpec(
        features=own,
        state=whole if central else own,
        outputs=outputs,
        hidden=encoder.hidden,
        activation=encoder.activation,
        gaussian=gaussian,
    )
    return Seat(spec, featurize, gym.spaces.Dict(boxes), actions)


def _mask_space(outputs: int) -> gym.Space[Any]:
    kind: Any = np.bool_  # gymnasium takes it, and does not say so
    return gym.spaces.Box(0, 1, (outputs,), kind)


def _outputs(space: gym.Space[Any]) -> tuple[int, bool]:
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n), False
    if isinstance(space, gym.spaces.MultiDiscrete):
        return int(space.nvec.sum()), False
    assert isinstance(space, gym.spaces.Box), f"the environment's maker refuses {space}"
    return int(np.prod(space.shape)), True


def algorithm_config(
    build: Build, seated_policies: Mapping[str, AnySeat], standardizer: Any, lr_scale: float = 1.0
) -> PPOConfig:
    """The whole run's configuration; ``lr_scale`` is what rollbacks have left of the learning rate."""
    experiment = build.experiment
    register_env(ENV, create_env)
    mapping = {a: build.policy_of[a] for a in build.learners}
    settings = RunnerSettings(
        featurize={n: s.featurize for n, s in seated_policies.items()},
        central=frozenset(n for n, e in build.learned.items() if e.critic == "central"),
        seed=experiment.seed,
    )
    folder = str(build.folder.resolve())
    env_config = {EXPERIMENT: experiment.model_dump_json(), FOLDER: folder, RUNNER: settings}
    config = (
        PPOConfig()
        .environment(ENV, env_config=env_config, disable_env_checking=True)
        .debugging(seed=experiment.seed, log_level="ERROR")
        .multi_agent(policies=sorted(seated_policies), policy_mapping_fn=lambda agent, *_, **__: mapping[str(agent)])
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(rl_module_specs={n: s.module() for n, s in seated_policies.items()})
        )
        .fault_tolerance(restart_failed_env_runners=True, max_num_env_runner_restarts=RESTARTS)
        .reporting(metrics_num_episodes_for_smoothing=1_000_000)
    )
    _place(config, experiment)
    _train(config, experiment, standardizer, lr_scale)
    if any(isinstance(s, LMSeat) for s in seated_policies.values()):
        config.learners(learner_class=LMLearner)
    return config


def _place(config: PPOConfig, experiment: Experiment) -> None:
    asked, ppo = experiment.resources, experiment.ppo
    config.env_runners(
        env_runner_cls=TellingRunner,
        num_env_runners=asked.env_runners,
        num_envs_per_env_runner=asked.envs_per_runner,
        num_cpus_per_env_runner=SHARE,
        batch_mode=ppo.batch_mode,
        rollout_fragment_length=ppo.rollout_fragment_length or "auto",
    )
    config.learners(num_learners=asked.learners, num_gpus_per_learner=gpus(experiment), num_cpus_per_learner=SHARE)


def gpus(experiment: Experiment) -> int:
    """GPUs a learner gets: as many as the file asks for, and with ``auto`` one if there is one."""
    asked = experiment.resources.gpus
    if asked != "auto":
        return asked
    import torch

    return int(torch.cuda.is_available())


def autocast(experiment: Experiment) -> bool:
    """Whether the update runs in bf16 autocast: asked for, or ``auto`` on a GPU that can."""
    import torch

    asked = experiment.resources.autocast
    return asked == "bf16" or (asked == "auto" and gpus(experiment) > 0 and torch.cuda.is_bf16_supported())


def _train(config: PPOConfig, experiment: Experiment, standardizer: Any, lr_scale: float) -> None:
    ppo, total = experiment.ppo, planned_steps(experiment.ppo, experiment.stop)

    def connector(observations: Any, actions: Any) -> FragmentToBatch:
        return FragmentToBatch(
            standardizer=standardizer,
            gamma=ppo.gamma,
            lambda_=ppo.lambda_,
            normalize_advantages=ppo.normalize_advantages,
        )

    config.learners(
        add_default_connectors_to_learner_pipeline=False,
        learner_class=RepertoryLearner,
        learner_connector=connector,
        learner_config_dict={"autocast": autocast(experiment)},
    )
    config.training(
        lr=linear((ppo.lr[0] * lr_scale, ppo.lr[1] * lr_scale), total),
        gamma=ppo.gamma,
        lambda_=ppo.lambda_,
        clip_param=ppo.clip_param,
        vf_clip_param=UNBOUNDED if ppo.vf_clip_param is None else ppo.vf_clip_param,
        vf_loss_coeff=ppo.vf_loss_coeff,
        entropy_coeff=quadratic(ppo.entropy_coeff, total),
        grad_clip=ppo.grad_clip,
        grad_clip_by="global_norm",
        use_kl_loss=False,
        train_batch_size_per_learner=ppo.train_batch_size // max(1, experiment.resources.learners),
        minibatch_size=ppo.minibatch_size,
        num_epochs=ppo.num_epochs,
    )


def planned_steps(ppo: PPO, stop: Stop) -> int | None:
    """Env steps the run is planned for, over which schedules run; None where only time ends it."""
    return None if stop.iterations is None else stop.iterations * ppo.train_batch_size


def linear(ends: tuple[float, float], total: int | None) -> Any:
    """RLlib's schedule from the first value to the last in a straight line over the planned steps.

    A schedule also where the value stays: RLlib then sets it at every update, and a restored optimizer cannot keep the
    value it was saved with.
    """
    start, end = ends
    return [[0, start], [total or 1, end]]


def quadratic(ends: tuple[float, float], total: int | None) -> Any:
    """RLlib's schedule that falls fast at first and slowly at the end: end + (start - end) (1 - progress)²."""
    start, end = ends
    if start == end or total is None:
        return start
    points = np.linspace(0.0, 1.0, SCHEDULE_POINTS + 1)
    return [[int(p * total), end + (start - end) * (1 - p) ** 2] for p in points]
