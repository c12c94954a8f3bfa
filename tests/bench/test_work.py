"""Work done for each env step, counted: what makes training ten times slower shows here without a clock."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bench.settings import Contest
from envs.session import Session
from envs.supply_chain.database import database
from policies.encoder import Actor, Critic
from policies.featurize import TextFeaturizer
from trainers.rllib.algorithm import algorithm_config
from trainers.rllib.runner import BatchedRunner

STATEMENTS, RECORDS, FORWARDS = 2.5, 8.0, 0.75
"""At most so many SQL statements, records and forward passes for each env step. Three policies decide for eight
environments in at most three passes; a tool call writes and reads once, and some search once more."""
LATE = 1.6
"""Work for a later step may be that much of an early one's: nothing grows with the batch."""


def counting(monkeypatch: pytest.MonkeyPatch, counts: Counter[str], owner: type, method: str) -> None:
    """Count a method's calls under the owner's name."""
    called: Callable[..., Any] = getattr(owner, method)

    def count(self: Any, *args: Any, **kwargs: Any) -> Any:
        counts[owner.__name__] += 1
        return called(self, *args, **kwargs)

    monkeypatch.setattr(owner, method, count)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    for owner, method in ((Actor, "forward"), (Critic, "forward"), (TextFeaturizer, "__call__"), (Session, "__init__")):
        counting(monkeypatch, counts, owner, method)
    return counts


@pytest.fixture
def runner(supply_chain: Contest) -> BatchedRunner:
    config = algorithm_config(supply_chain.build, supply_chain.seats, supply_chain.standardizer)
    return BatchedRunner(config=config)


def test_an_env_step_costs_little(runner: BatchedRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL statements, records and forward passes for each env step stay below fixed bounds, early and late."""
    counts = counted(monkeypatch)
    spent: list[dict[str, float]] = []
    for _ in range(3):
        counts.clear()
        statements = database().statements
        (fragment,) = runner.sample(num_timesteps=256)
        tallies = [e.unwrapped.env.unwrapped.drain() for e in runner.env.envs]
        decisions = sum(sum(t.calls.values()) for t in tallies)
        assert decisions == len(fragment)
        spent.append(
            {
                "statements": (database().statements - statements) / len(fragment),
                "forwards": counts["Actor"] / len(fragment),
                "featurized": counts["TextFeaturizer"] / len(fragment),
                "sessions": counts["Session"] / len(fragment),
            }
        )
    first, last = spent[0], spent[-1]
    assert first["statements"] <= STATEMENTS, spent
    assert max(first["forwards"], first["featurized"]) <= FORWARDS, spent
    assert all(last[k] <= LATE * first[k] for k in first), spent
    assert counts["Critic"] == 0, "the critic is for learning only"


def test_an_episode_keeps_few_records(runner: BatchedRunner) -> None:
    """A decision leaves a handful of records, whatever its number in the episode."""
    runner.sample(num_timesteps=128)
    sessions = [e.unwrapped.env.unwrapped.session for e in runner.env.envs]
    for session in sessions:
        decisions = sum(r.kind == "decided" for r in session.records)
        assert len(session.records) <= RECORDS * decisions + 3, Counter(r.kind for r in session.records)


def test_an_update_does_no_more_than_asked(
    supply_chain: Contest, runner: BatchedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epochs in minibatches of 64: as many forward passes a policy, and one of the critic over all rows."""
    learner = algorithm_config(supply_chain.build, supply_chain.seats, supply_chain.standardizer).build_learner(
        spaces=runner.get_spaces()
    )
    fragments = runner.sample()
    rows = [int(c["loss_mask"].sum()) for c in fragments[0].columns.values()]
    counts = counted(monkeypatch)
    learner.update(
        episodes=fragments, timesteps={"num_env_steps_sampled_lifetime": 256}, num_epochs=2, minibatch_size=64
    )
    steps = 2 * sum(-(-n // 64) for n in rows)
    assert counts["Actor"] == steps
    assert counts["Critic"] == steps + len(rows)
