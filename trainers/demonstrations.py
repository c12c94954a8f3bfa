"""What a warm start imitates: decisions of a team's baseline, or of recorded episodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assembly.build import Build
from assembly.lm_sections import Warmup
from envs.candidates import candidates
from policies.playing import Playable, RulePolicy
from runtime.records import Decided, Observed, Record, ToolCall
from runtime.seams import digest
from trainers.play import play
from trainers.rllib.connector import Standardizer
from trainers.traces import traced

Episode = tuple[Sequence[Record], Mapping[str, Sequence[float]]]
"""Its records, and what came of each agent's decisions, where that is known."""
Demonstration = tuple[Observed, int, float]
"""What was seen, the candidate that was called, and what came of it."""


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


@dataclass(frozen=True, slots=True)
class Demonstrated:
    """What was shown, and what of it cannot be imitated."""

    shown: Mapping[str, Shown]
    """By policy."""
    left_out: Mapping[str, Mapping[str, int]]
    """By policy and tool: how many calls were no legal candidates."""
    strangers: Mapping[str, int]
    """How many decisions were of roles that the team does not have, by their names."""

    def told(self) -> list[str]:
        """What was left out, in words."""
        said = [f"{n}: {_counts(c)} are no legal calls of it" for n, c in self.left_out.items() if c]
        return [*said, *([f"{_counts(self.strangers)} are no roles of the team"] if self.strangers else [])]


def demonstrations(
    build: Build, seats: Mapping[str, Any], settings: Warmup, standardizer: Standardizer | None = None
) -> Demonstrated:
    """Decisions to imitate. A call that is no legal candidate is counted, and nothing is put in its place."""
    assert build.team is not None
    if settings.recorded:
        told = traced(settings.source, build.folder, build.team.name, settings.episodes)
        episodes: Iterator[Episode] = ((records, {}) for records in told)
    else:
        episodes = _played(build, settings, standardizer)
    calls = {r.name: candidates(build.team, r) for r in build.team.roles}
    found: dict[str, list[Demonstration]] = defaultdict(list)
    left_out: dict[str, Counter[str]] = defaultdict(Counter[str])
    strangers = Counter[str]()
    for records, returns in episodes:
        for seen, call in _decisions(records):
            if seen.agent not in calls:
                strangers[seen.agent] += 1
                continue
            policy, whole = build.policy_of[seen.agent], _with_candidates(seen, calls[seen.agent])
            place = _place(whole, call)
            if place is None:
                left_out[policy][call.tool or "malformed"] += 1
                continue
            known = returns.get(seen.agent)
            found[policy].append((whole, place, float("nan") if known is None else known[seen.turn]))
    shown = {n: _shown(seats[n], pairs) for n, pairs in found.items() if n in seats and pairs}
    return Demonstrated(shown, {n: c for n, c in left_out.items() if n in seats}, strangers)


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


def _decisions(records: Iterable[Record]) -> Iterator[tuple[Observed, ToolCall]]:
    """What was seen, and what was called."""
    seen: Observed | None = None
    for record in records:
        if isinstance(record, Observed):
            seen = record
        elif isinstance(record, Decided) and seen is not None:
            yield seen, record.call


def _place(seen: Observed, call: ToolCall) -> int | None:
    """Which of the candidates a call is; None: none of them, or not a legal one."""
    if call not in seen.candidates:
        return None
    place = seen.candidates.index(call)
    return place if seen.mask[place] else None


def _with_candidates(seen: Observed, calls: Sequence[ToolCall]) -> Observed:
    """What was seen, with the role's own candidates. Where it was not recorded what was legal, everything was."""
    if not seen.candidates:
        return seen.model_copy(update={"candidates": tuple(calls), "mask": (True,) * len(calls)})
    mask = seen.mask or (True,) * len(seen.candidates)
    legal = [c for c, ok in zip(seen.candidates, mask, strict=True) if ok]
    return seen.model_copy(update={"candidates": tuple(calls), "mask": tuple(c in legal for c in calls)})


def _counts(many: Mapping[str, int]) -> str:
    return ", ".join(f"{n} × {name}" for name, n in sorted(many.items()))


def _shown(seat: Any, pairs: Sequence[Demonstration]) -> Shown:
    seen = [{"text": o.text, "action_mask": np.array(o.mask)} for o, _, _ in pairs]
    arrays = seat.featurize(seen)
    return Shown(
        tokens=torch.from_numpy(arrays["tokens"]),
        legal=torch.from_numpy(arrays["action_mask"]),
        calls=torch.tensor([c for _, c, _ in pairs]),
        returns=torch.tensor([r for _, _, r in pairs]),
    )
