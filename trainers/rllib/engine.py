"""One RLlib algorithm, held by what the trainer needs of it: an iteration, its figures, its state, its policies."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import ALL_MODULES

from assembly.build import Build, KeyedStandardizer
from envs.tally import Tally
from policies.playing import Playable
from runtime.errors import RepertoryError
from runtime.types import AgentId
from trainers.rllib.algorithm import AnySeat, algorithm_config
from trainers.rllib.faults import SamplerDied
from trainers.rllib.learner import UPDATE_SECONDS
from trainers.rllib.refusals import adapters
from trainers.warmup import warm_up


class TrainingFault(RepertoryError):
    """Training did nothing, or with the wrong weights."""


@dataclass(frozen=True, slots=True)
class Iterated:
    """What one iteration gave."""

    learners: Mapping[str, Mapping[str, Any]]
    """RLlib's learner metrics, by policy."""
    env_steps: int
    """Env steps sampled in this iteration."""
    missing: int
    """Rewards that were missing."""
    sample_seconds: float
    learn_seconds: float
    tally: Tally
    latencies_ms: Sequence[tuple[AgentId, float]]
    """A sample of decisions: who took it, and how long it took, ms."""
    episodes: Mapping[str, float]
    """RLlib's means over episodes: ``return``, ``length``, and each agent's return under ``agent/NAME``."""


class Engine:
    """An experiment's PPO, running.

    Args:
        build: the experiment.
        policies: how each learning policy sees and how large it is.
        standardizer: statistics that rewards are standardized with; the learner's own from here on.
        lr_scale: what rollbacks have left of the learning rate.
    """

    def __init__(
        self,
        build: Build,
        policies: Mapping[str, AnySeat],
        standardizer: KeyedStandardizer | None,
        lr_scale: float = 1.0,
    ) -> None:
        self.build, self.policies = build, policies
        self.imitated = warm_up(build, policies, standardizer)
        """How policies imitate that have just had their warm start."""
        self._config = algorithm_config(build, policies, standardizer, lr_scale)
        self.algorithm: Algorithm = self._config.build_algo()
        self._hashes = self._learner_hashes()

    def iterate(self) -> Iterated:
        """Sample, learn, send the new weights out.

        Raises:
            TrainingFault: no policy changed, or a sampler does not have the learner's weights.
            SamplerDied: no sampler's process is left.
        """
        began = time.perf_counter()
        result = self.algorithm.train()
        seconds = time.perf_counter() - began
        self._check_samplers()
        self._check_weights()
        runners = result["env_runners"]
        learners = {n: result["learners"][n] for n in self.policies if n in result["learners"]}
        learning = float(result["learners"][ALL_MODULES][UPDATE_SECONDS])
        return Iterated(
            learners=learners,
            env_steps=int(runners["num_env_steps_sampled"]),
            missing=int(runners.get("missing_rewards", 0)),
            sample_seconds=seconds - learning,
            learn_seconds=learning,
            tally=self._drained(),
            latencies_ms=[d for part in self._on_runners(lambda runner: runner.latencies_ms()) for d in part],
            episodes=_episode_means(runners),
        )

    def _check_samplers(self) -> None:
        asked, group = self.build.experiment.resources.env_runners, self.algorithm.env_runner_group
        if asked and group is not None and group.num_healthy_remote_workers() == 0:
            raise SamplerDied(f"the processes of all {asked} samplers died in one iteration")

    def _check_weights(self) -> None:
        before, self._hashes = self._hashes, self._learner_hashes()
        if before == self._hashes:
            raise TrainingFault(
                "an iteration changed no policy: zero updates took place (is lr 0, or every reward missing?)"
            )
        for theirs in self._on_runners(lambda runner: runner.policy_hashes()):
            stale = [n for n, h in theirs.items() if self._hashes.get(n, h) != h]
            if stale:
                raise TrainingFault(f"a sampler plays with stale weights of {', '.join(stale)}")

    def _on_runners(self, ask: Any) -> list[Any]:
        group = self.algorithm.env_runner_group
        assert group is not None
        remote = group.num_healthy_remote_workers() > 0
        return group.foreach_env_runner(ask, local_env_runner=not remote)

    def _learner_hashes(self) -> dict[str, str]:
        group = self.algorithm.learner_group
        assert group is not None
        if group.is_local:
            local: Any = group._learner
            return local.policy_hashes()
        ask: Any = lambda learner, _=None: learner.policy_hashes()  # noqa: E731 - RLlib types it with an argument more
        answer: Any = next(iter(group.foreach_learner(ask)))
        return answer.get()

    def _drained(self) -> Tally:
        parts = self._on_runners(
            lambda runner: [a.env.unwrapped.drain() for a in adapters(runner.env.envs) if _keeps_tally(a)]
        )
        return Tally.total(t for part in parts for t in part)

    def actors(self) -> dict[str, Any]:
        """The trained networks that decide, by policy, as copies."""
        group = self.algorithm.learner_group
        assert group is not None
        weights = group.get_state(components="learner/rl_module")["learner"]["rl_module"]
        return {name: seat.actor(weights[name]) for name, seat in self.policies.items()}

    def seats(self) -> dict[AgentId, Playable]:
        """The policies as they are now, frozen, by agent that learns."""
        playable = {n: self.policies[n].policy(a) for n, a in self.actors().items()}
        return {a: playable[self.build.policy_of[a]] for a in self.build.learners}

    def standardizer_state(self) -> dict[str, Any]:
        """The reward statistics as they are now; empty for raw rewards."""
        group = self.algorithm.learner_group
        assert group is not None
        return dict(group.get_state(components="learner/standardizer")["learner"].get("standardizer", {}))

    def save(self, directory: Path) -> None:
        """Write all of the algorithm's state into an absolute directory."""
        self.algorithm.save_to_path(str(directory))

    def restore(self, directory: Path) -> None:
        """Go back to a state that ``save`` wrote."""
        self.algorithm.restore_from_path(str(directory))
        self._hashes = self._learner_hashes()

    def close(self) -> None:
        """Stop its processes."""
        self.algorithm.stop()


def _keeps_tally(adapter: Any) -> bool:
    return hasattr(adapter.env.unwrapped, "drain")


def _episode_means(runners: Mapping[str, Any]) -> dict[str, float]:
    means: dict[str, float] = {}
    if "episode_return_mean" in runners:
        means["return"] = float(runners.get("team_return_mean", runners["episode_return_mean"]))
        means["length"] = float(runners["episode_len_mean"])
        for agent, value in runners.get("agent_episode_returns_mean", {}).items():
            means[f"agent/{agent}"] = float(value)
    return means
