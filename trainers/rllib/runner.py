"""RLlib's env runner, batched: all environments step together, one forward a policy and step, columns and no episodes.

With ``batch_mode="complete_episodes"`` a call opens no more episodes once it has taken enough env steps and plays the
open ones to their end: nothing is in flight between two calls, no short episode is preferred, and the runner's state
is one number. With ``"truncate_episodes"`` open trajectories are cut, valued by the critic and carried over.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, SAMPLE_TIMER, WEIGHTS_SEQ_NO

from runtime.types import AgentId
from trainers.rllib.acting import Actor
from trainers.rllib.adapter import Adapter
from trainers.rllib.fragment import Fragment, ModuleID
from trainers.rllib.memory import settle
from trainers.rllib.metrics import Finished, Tally, log_counts, log_episodes
from trainers.rllib.refusals import Unsupported, adapters, mapped, refuse, refuse_modules
from trainers.rllib.rollout import Opened, Quota, Rollout
from trainers.rllib.slots import FEATURES, RUNNER, RunnerSettings, policy_hash

RLLIB_ENV = "rllib-multi-agent-env-v0"
"""The name under which RLlib's runner registers whatever environment it has."""
EPISODES = "episodes"
"""Key of the runner's own state: which worker it is and how many episodes it has opened."""


class BatchedRunner(MultiAgentEnvRunner):
    """``env_runner_cls`` for environments adapted by ``AECAdapter`` or ``ParallelAdapter``.

    Raises Unsupported for everything in the configuration that it would not honour.
    """

    def __init__(self, config: Any, **kwargs: Any) -> None:
        refuse(config)
        self._settings: RunnerSettings = config.env_config.get(RUNNER) or RunnerSettings()
        self._finished: list[Finished] = []
        self._opened = 0
        self._rollout: Rollout | None = None
        super().__init__(config=config, **kwargs)
        refuse_modules(dict(self.module.items()))
        if self.env is not None:
            self._rollout = self._new_rollout()

    def make_env(self) -> None:
        gym.registry.pop(RLLIB_ENV, None)  # RLlib registers it again for every runner, and gymnasium warns each time
        super().make_env()
        if self._rollout is not None:
            self._rollout = self._new_rollout()

    def sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool | None = None,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Fragment]:
        if random_actions:
            raise Unsupported("random_actions: let a policy that draws uniformly play instead")
        settle()
        if self._rollout is None:
            raise ValueError("this runner has no environment: it only holds the weights of the remote ones")
        if force_reset:
            self._rollout = self._new_rollout()
        quota = self._quota(self._rollout, num_timesteps, num_episodes)
        self.metrics.log_value(WEIGHTS_SEQ_NO, self._weights_seq_no, window=1)
        tally = Tally()
        with self.metrics.log_time(SAMPLE_TIMER):
            exploring = bool(self.config.explore) if explore is None else explore
            fragment = self._rollout.play(quota, tally, self._open, exploring)
        log_counts(self.metrics, tally, self._rollout.mapping)
        self._finished += tally.finished
        make_callback(
            "on_sample_end",
            callbacks_objects=self._callbacks,
            callbacks_functions=cast(Any, self.config.callbacks_on_sample_end),
            kwargs={"env_runner": self, "metrics_logger": self.metrics, "samples": [fragment]},
        )
        return [fragment]

    def get_metrics(self) -> Any:
        if self._rollout is not None:
            log_episodes(self.metrics, self._finished, self._rollout.mapping)
        self._finished = []
        return self.metrics.reduce()

    def get_state(self, components: Any = None, *, not_components: Any = None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(EPISODES, components, not_components):
            state[EPISODES] = {"worker": self.worker_index or 0, "opened": self._opened}
        return state

    def set_state(self, state: Any) -> None:
        """Take over a state; a runner in another one's place goes on past every episode that may have been played.

        No worker knows another one's count. But an episode takes a step at least, so after S env steps of all workers
        together none of them has opened more than S.
        """
        if COMPONENT_RL_MODULE in state and state.get(WEIGHTS_SEQ_NO, 0) < self._weights_seq_no:
            self._weights_seq_no = -1  # gone back to an earlier checkpoint: RLlib would keep the newer weights
        super().set_state(state)
        counted = state.get(EPISODES)
        if self.config.in_evaluation:
            return
        if counted and counted["worker"] == (self.worker_index or 0):
            self._opened = counted["opened"]
        elif self.worker_index and not self._opened:
            self._opened = int(state.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0))

    def policy_hashes(self) -> dict[ModuleID, str]:
        """What this runner samples with; equal to the learner's where its weights are not stale."""
        return {mid: policy_hash(m) for mid, m in self.module.items()}

    def latencies_ms(self) -> list[tuple[AgentId, float]]:
        """A sample of decisions since it was last asked for: who took it, and how long it took, ms."""
        return self._rollout.stopwatch.take() if self._rollout is not None else []

    def _open(self, env: Adapter) -> Opened:
        """Reset to this worker's next episode: worker i of n plays i, i + n, i + 2n, …"""
        workers = max(1, self.num_workers or 0)
        episode = max(0, (self.worker_index or 0) - 1) + workers * self._opened
        self._opened += 1
        return env.reset(seed=self._settings.seed, options={"episode": episode})

    def _quota(self, rollout: Rollout, steps: int | None, episodes: int | None) -> Quota:
        if steps is not None and episodes is not None:
            raise ValueError(f"num_timesteps ({steps}) or num_episodes ({episodes}), not both")
        whole = self.config.batch_mode == "complete_episodes"
        if episodes is not None:
            if any(s is not None for s in rollout.slots):
                raise Unsupported("num_episodes while trajectories are open would lose them: pass force_reset=True")
            return Quota(math.inf, episodes, finish=True)
        if steps is None:
            share = math.ceil(self.config.total_train_batch_size / max(1, self.num_workers or 0))
            steps = share if whole else self.config.get_rollout_fragment_length(self.worker_index) * self.num_envs
        return Quota(steps, math.inf, finish=whole)

    def _new_rollout(self) -> Rollout:
        envs = adapters(list(self.env.envs or ()))
        modules = dict(self.module.items())
        mapping = mapped(self.config, envs[0].seats)
        actors = {m: self._actor(m, modules[m], envs[0], mapping) for m in sorted(set(mapping.values()))}
        return Rollout(envs, actors, mapping, _places(self._settings.central, modules, mapping))

    def _actor(self, mid: ModuleID, module: Any, env: Adapter, mapping: Mapping[AgentId, ModuleID]) -> Actor:
        agents = [a for a, m in mapping.items() if m == mid]
        spaces = [(env.observation_spaces[a], env.action_spaces[a]) for a in agents]
        if any(space != spaces[0] for space in spaces):
            raise Unsupported(f"policy {mid} is shared by agents with different spaces: {', '.join(agents)}")
        return Actor(mid, module, spaces[0], self._settings.featurize.get(mid), self.config)


def _places(
    central: frozenset[ModuleID], modules: Mapping[ModuleID, Any], mapping: Mapping[AgentId, ModuleID]
) -> dict[ModuleID, dict[AgentId, slice]]:
    """Where each agent's features lie in the state of the modules with a central critic."""
    if not central:
        return {}
    places: dict[AgentId, slice] = {}
    end = 0
    for agent, mid in mapping.items():
        width = modules[mid].observation_space[FEATURES].shape[0]
        places[agent] = slice(end, end + width)
        end += width
    return dict.fromkeys(central, places)
