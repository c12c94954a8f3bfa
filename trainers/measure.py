"""Random play before training: which words there are, and how large rewards are."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from assembly.build import Build, KeyedStandardizer
from assembly.experiment import Encoder
from policies.features import HashingFeatures, TextFeatures, TfidfFeatures
from policies.featurize import TextFeaturizer
from policies.playing import Playable, RandomPolicy
from runtime.records import Observed, Rewarded
from runtime.types import AgentId
from trainers.play import Played, play
from trainers.rllib.algorithm import make_adapter

EPISODES = 400
"""Random episodes before training: a word that one episode in 100 shows is then missed once in 50 times."""


@dataclass
class Measured:
    """What random play showed."""

    texts: dict[AgentId, list[str]] = field(default_factory=lambda: defaultdict(list[str]))
    """Everything each agent saw."""
    rewards: dict[AgentId, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    """What each decision was paid, missing rewards left out."""
    returns: list[float] = field(default_factory=list[float])
    steps: int = 0
    cost_usd: float = 0.0
    missing: int = 0
    """Episodes with a missing reward."""
    why: dict[str, str] = field(default_factory=dict[str, str])
    """The reason last seen, by reward term."""

    def add(self, played: Played) -> None:
        """Count an episode in."""
        self.steps += played.steps
        self.cost_usd += played.cost_usd()
        for record in played.records:
            if isinstance(record, Observed):
                self.texts[record.agent].append(record.text)
            elif isinstance(record, Rewarded) and record.value is None:
                self.why[record.term] = record.missing
        if np.isnan(played.team_return):
            self.missing += 1
            return
        self.returns.append(played.team_return)
        for agent, rewards in played.rewards.items():
            self.rewards[agent] += rewards


def measure(build: Build, episodes: int = EPISODES) -> Measured:
    """Play the first training episodes at random (scripted roles by their rules)."""
    found = Measured()
    for played in play(
        lambda: make_adapter(build, "train"),
        random_seats(build),
        range(episodes),
        seed=build.experiment.seed,
        greedy=False,
    ):
        found.add(played)
    return found


def random_seats(build: Build) -> dict[AgentId, Playable]:
    """Random players for all learning agents."""
    spaces = cast("Mapping[AgentId, Any]", make_adapter(build, "train").action_spaces)

    def sampler(agent: AgentId) -> RandomPolicy:
        space = spaces[agent]

        def sample(seed: int) -> object:
            space.seed(seed)
            return space.sample()

        return RandomPolicy(sample)

    return {a: sampler(a) for a in build.learners}


def seed_statistics(standardizer: KeyedStandardizer | None, measured: Measured) -> None:
    """Let the standardizer begin with what random play was paid, so that the first batch is on scale."""
    if standardizer is not None:
        for agent in sorted(measured.rewards):
            standardizer.update(agent, measured.rewards[agent])


def featurizers(build: Build, measured: Measured) -> dict[str, TextFeaturizer | None]:
    """How each encoder policy sees; None where observations are arrays."""
    encoders = {n: p for n, p in build.learned.items() if isinstance(p, Encoder)}
    return {name: _featurizer(build, name, encoder, measured.texts) for name, encoder in encoders.items()}


def _featurizer(build: Build, name: str, encoder: Encoder, texts: Mapping[AgentId, list[str]]) -> TextFeaturizer | None:
    if build.team is None:
        return None
    seen = [t for a in build.learners if build.policy_of[a] == name for t in texts.get(a, [])]
    return TextFeaturizer(_features(encoder, seen))


def _features(encoder: Encoder, texts: list[str]) -> TextFeatures:
    if encoder.features == "minilm":
        from policies.sentence import SentenceFeatures

        return SentenceFeatures()
    if encoder.features == "hashing":
        return HashingFeatures(encoder.feature_size)
    return TfidfFeatures.fit(texts, encoder.feature_size)
