"""What a warm start imitates: decisions of a team's baseline, or of recorded episodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assembly.build import Build
from assembly.lm_sections import Warmup
from policies.playing import Playable, RulePolicy
from runtime.records import RECORD, Decided, Observed, Record
from runtime.seams import digest
from trainers.play import play
from trainers.rllib.connector import Standardizer

Episode = tuple[Sequence[Record], Mapping[str, Sequence[float]]]
"""Its records, and what came of each agent's decisions, where that is known."""
Demonstration = tuple[Observed, int, float]
"""What was seen, what was called, and what came of it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What was shown of one policy's decisions."""

    tokens: Tensor
    """(B, L) int32."""
    legal: Tensor
    """(B, K) bool."""
    calls: Tensor
    """(B,) int64, the candidate that was called."""
    returns: Tensor
    """(B,) float32, what came of it, in standardized rewards; NaN where nobody knows."""

    def __len__(self) -> int:
        return len(self.calls)

    def at(self, rows: Tensor) -> "Shown":
        """Some of them."""
        return Shown(self.tokens[rows], self.legal[rows], self.calls[rows], self.returns[rows])


def demonstrations(
    build: Build, seats: Mapping[str, Any], settings: Warmup, standardizer: Standardizer | None = None
) -> dict[str, Shown]:
    """Decisions to imitate, by policy."""
    path = build.folder / settings.source
    if path.suffix == ".jsonl":
        episodes: Iterator[Episode] = ((records, {}) for records in _read(path, settings.episodes))
    else:
        episodes = _played(build, settings, standardizer)
    found: dict[str, list[Demonstration]] = defaultdict(list)
    for records, returns in episodes:
        for seen, call in _decisions(records):
            known = returns.get(seen.agent)
            found[build.policy_of[seen.agent]].append((seen, call, float("nan") if known is None else known[seen.turn]))
    return {n: _shown(seats[n], pairs) for n, pairs in found.items() if n in seats and pairs}


def _played(build: Build, settings: Warmup, standardizer: Standardizer | None) -> Iterator[Episode]:
    from trainers.rllib.algorithm import make_adapter

    assert build.team is not None
    rules = build.team.baselines[settings.source].policies
    assert rules is not None
    seats: dict[str, Playable] = {a: RulePolicy(rules[a]) for a in build.learners}
    seed = digest("warm start", build.experiment.seed) % 2**31
    for played in play(lambda: make_adapter(build, "train"), seats, range(settings.episodes), seed=seed, greedy=False):
        yield (
            played.records,
            {a: returns_to_go(r, build.experiment.ppo.gamma, standardizer, a) for a, r in played.rewards.items()},
        )


def returns_to_go(rewards: Sequence[float], gamma: float, standardizer: Standardizer | None, agent: str) -> list[float]:
    """What came of each of an agent's decisions, discounted by its own turns, in standardized rewards.

    Args:
        rewards: what each decision was paid, in the terms' unit.
        gamma: the discount.
        standardizer: None: raw rewards.
        agent: whose statistics apply.
    """
    paid = np.asarray(rewards, np.float32)
    if standardizer is not None:
        paid = standardizer.transform(agent, paid)
    found: list[float] = []
    total = 0.0
    for reward in reversed(paid.tolist()):
        total = reward + gamma * total
        found.append(total)
    return found[::-1]


def _read(path: Path, most: int) -> Iterator[Sequence[Record]]:
    """Episodes of a file of records, a line a record; an episode is what has one correlation id."""
    episodes: dict[str, list[Record]] = {}
    with path.open() as lines:
        for line in lines:
            record = RECORD.validate_json(line)
            if record.correlation_id not in episodes and len(episodes) >= most:
                continue
            episodes.setdefault(record.correlation_id, []).append(record)
    yield from episodes.values()


def _decisions(records: Iterable[Record]) -> Iterator[tuple[Observed, int]]:
    """What was seen, and the candidate that was called, where it was one and legal."""
    seen: Observed | None = None
    for record in records:
        if isinstance(record, Observed):
            seen = record
        elif isinstance(record, Decided) and seen is not None and record.call in seen.candidates:
            call = seen.candidates.index(record.call)
            if not seen.mask or seen.mask[call]:
                yield seen, call


def _shown(seat: Any, pairs: Sequence[Demonstration]) -> Shown:
    everything = [True] * seat.spec.outputs
    seen = [{"text": o.text, "action_mask": np.array(o.mask or everything)} for o, _, _ in pairs]
    arrays = seat.featurize(seen)
    return Shown(
        tokens=torch.from_numpy(arrays["tokens"]),
        legal=torch.from_numpy(arrays["action_mask"]),
        calls=torch.tensor([c for _, c, _ in pairs]),
        returns=torch.tensor([r for _, _, r in pairs]),
    )
