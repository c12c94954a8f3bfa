"""A learner on a probe team: the project's own runner, connector and learner, in this process and without Ray."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
import torch

from assembly.build import Build
from assembly.experiment import Experiment
from policies.features import HashingFeatures
from policies.featurize import Arrays, TextFeaturizer
from policies.playing import EncoderPolicy
from runtime.records import Decided, Observed
from tests.probes import teams
from tests.rllib.toys import Company
from trainers.play import Played, play
from trainers.rllib.algorithm import algorithm_config, make_adapter, seats

Kind = TypeVar("Kind", Observed, Decided)

FEATURES = 64
"""Columns of the text features: far more than the words of these teams."""
EPISODES = 100
"""Held-out episodes: shares are known to ± 0.1 (two standard errors of a fair coin)."""
SETTINGS: Mapping[str, Any] = {
    "lr": 2e-2,
    "gamma": 1.0,
    "lambda_": 0.95,
    "entropy_coeff": 0.1,
    "normalize_advantages": False,
    "grad_clip": None,
    "train_batch_size": 64,
    "minibatch_size": 64,
    "num_epochs": 4,
}
"""PPO for probes: what they have to learn takes 20 to 40 iterations, each of some 50 ms.

A policy with nothing to learn must not drift: the entropy bonus holds it, and advantages near 0 are left near 0.
"""


class NowOnly:
    """Sees the last line of an observation alone: what the world shows now, not what was done before."""

    def __init__(self) -> None:
        self._whole = TextFeaturizer(HashingFeatures(FEATURES))

    def __call__(self, observations: Sequence[Mapping[str, Any]]) -> Arrays:
        return self._whole([{**o, "text": o["text"].rsplit("\n", 1)[-1]} for o in observations])


class Blind:
    """Sees nothing but the mask."""

    def __call__(self, observations: Sequence[Mapping[str, Any]]) -> Arrays:
        return TextFeaturizer(HashingFeatures(FEATURES))([{**o, "text": ""} for o in observations])


class Unmasked:
    """Is not told what is legal."""

    def __call__(self, observations: Sequence[Mapping[str, Any]]) -> Arrays:
        arrays = TextFeaturizer(HashingFeatures(FEATURES))(observations)
        return {**arrays, "action_mask": np.ones_like(arrays["action_mask"])}


class Probe:
    """A probe team and the policies that learn on it, one a role, each with a critic of its own.

    Args:
        team: the name of a function in ``tests.probes.teams``.
        terms: the reward terms, by name.
        sight: how every policy sees; all of its text by default.
        ppo: what to set otherwise.
        args: the team's arguments.
    """

    def __init__(
        self, team: str, *terms: str, sight: Any = None, ppo: Mapping[str, Any] | None = None, **args: Any
    ) -> None:
        roles = [r.name for r in getattr(teams, team)(**args).roles]
        self.build = Build(
            Experiment.model_validate(
                {
                    "name": "probe",
                    "seed": 3,
                    "team": {"use": f"tests.probes.teams:{team}", "args": args},
                    "policies": {r: {"kind": "encoder", "hidden": [16]} for r in roles},
                    "rewards": {"terms": [{"use": t} for t in terms], "standardize": {"per": "none"}},
                    "ppo": {**SETTINGS, **(ppo or {})},
                    "resources": {"envs_per_runner": 16},
                }
            )
        )
        self.sight = sight or TextFeaturizer(HashingFeatures(FEATURES))
        self.company = Company(algorithm_config(self.build, seats(self.build, dict.fromkeys(roles, self.sight)), None))

    def train(self, iterations: int) -> "Probe":
        """Sample and learn that often."""
        for _ in range(iterations):
            self.company.train()
        return self

    def policy(self, role: str) -> EncoderPolicy:
        """The policy as it is now, as it would be played."""
        return EncoderPolicy(deepcopy(self._module(role).pi), self.sight)

    def play(self, episodes: int, *, greedy: bool = False) -> list[Played]:
        """Held-out episodes with the policies as they are."""
        seated = {r: self.policy(r) for r in self.build.agents}
        return list(play(lambda: make_adapter(self.build, "eval"), seated, range(episodes), seed=0, greedy=greedy))

    def values(self, role: str, by: str = "round") -> dict[str, float]:
        """What the role's critic says, as means over held-out decisions with the same ``round`` or ``light``."""
        said: dict[str, list[float]] = {}
        for record in self._of(role, Observed):
            seen = [{"text": record.text, "action_mask": np.asarray(record.mask, np.int8)}]
            features = torch.from_numpy(self.sight(seen)["features"])
            shown = json.loads(record.text.rsplit("world ", 1)[-1])[by]
            with torch.no_grad():
                said.setdefault(shown, []).append(self._module(role).vf(features).item())
        return {shown: float(np.mean(v)) for shown, v in said.items()}

    def share(self, role: str, turn: int = 0, **args: str) -> float:
        """The share of the role's drawn decisions of that turn whose call has those arguments."""
        return float(np.mean([r.call.args == args for r in self._of(role, Decided) if r.turn == turn]))

    def success(self) -> float:
        """Mean team return, as drawn, on held-out episodes."""
        return float(np.mean([p.team_return for p in self.play(EPISODES)]))

    def _of(self, role: str, kind: type[Kind]) -> list[Kind]:
        played = self.play(EPISODES)
        return [r for p in played for r in p.records if isinstance(r, kind) and r.agent == role]

    def _module(self, role: str) -> Any:
        module: Any = self.company.learner.module
        return module[role].unwrapped()
