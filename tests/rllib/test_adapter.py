"""PettingZoo environments as RLlib sees them: who is asked, who is paid, how each part ends, what chance hangs on."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.rllib.toys import ABC, Chorus, Relay
from trainers.rllib.adapter import Adapter, AECAdapter, ParallelAdapter


def played(adapter: Adapter, episode: int = 0) -> tuple[list[dict[str, Any]], dict[str, bool], dict[str, float]]:
    """Play an episode with every action 0: infos of each step, who terminated (False: was cut), returns."""
    seen, infos = adapter.reset(seed=1, options={"episode": episode})
    told, ended, returns = [infos], {}, dict.fromkeys(ABC, 0.0)
    while True:
        seen, rewards, terminated, truncated, infos = adapter.step(dict.fromkeys(seen, 0))
        for agent, reward in rewards.items():
            returns[agent] += reward
        ended.update({a: e.terminated for a, e in adapter.ends.items()})
        if terminated["__all__"] or truncated["__all__"]:
            return told, ended, returns
        told.append(infos)


@pytest.mark.parametrize(
    "make", [lambda **k: AECAdapter(Relay(rounds=2, **k)), lambda **k: ParallelAdapter(Chorus(**k))]
)
@pytest.mark.parametrize(
    ("end", "terminated"),
    [
        ("term", {"A": True, "B": True, "C": True}),
        ("trunc", {"A": False, "B": False, "C": False}),
        ("mixed", {"A": True, "B": False, "C": True}),
    ],
)
def test_each_agent_ends_in_its_own_way(make: Any, end: str, terminated: dict[str, bool]) -> None:
    """Termination and truncation may be mixed at the end; nobody's bootstrap is lost or made up."""
    adapter = make(end=end)
    assert played(adapter)[1] == terminated
    assert all(e.terminated or e.last is not None for e in adapter.ends.values())


@pytest.mark.parametrize(
    "make", [lambda: AECAdapter(Relay(rounds=2, die=True)), lambda: ParallelAdapter(Chorus(die=True))]
)
def test_an_agent_that_leaves_early_is_asked_no_more(make: Any) -> None:
    """A leaves after its first turn; the episode goes on for the others."""
    told, ended, _ = played(make())
    assert sum("A" in infos for infos in told) == 1
    assert ended == {"A": True, "B": True, "C": True}


def test_an_episode_may_end_before_everybody_was_asked() -> None:
    """B and C are paid although they never had a turn."""
    told, ended, returns = played(AECAdapter(Relay(early=True)))
    assert [set(infos) for infos in told] == [{"A"}]
    assert set(ended) == set(ABC)
    assert returns["A"] == returns["B"] == returns["C"]


def test_a_team_reward_at_the_end_reaches_everybody() -> None:
    """Rewards are everybody's of the very turn, not only of the agent that is to act next."""
    returns = [played(AECAdapter(Relay()), k)[2] for k in range(20)]
    assert all(r["A"] == r["B"] == r["C"] for r in returns)
    assert any(r["A"] > 0 for r in returns)


def test_chance_is_keyed_by_seed_episode_and_own_turns() -> None:
    """Where the environment has no key of its own, the adapter counts: seed, episode, turns of this very agent."""
    told, _, _ = played(AECAdapter(Relay(rounds=2)), episode=5)
    assert [(a, i["key"], i["turn"]) for infos in told for a, i in infos.items()] == [
        (a, (1, 5), turn) for turn in (0, 1) for a in ABC
    ]


def test_an_episode_is_the_same_whatever_was_played_before() -> None:
    """Episode k of a seed is a fixed thing; another k or another seed is another one."""

    def opening(adapter: Adapter, seed: int, episode: int) -> np.ndarray:
        seen, _ = adapter.reset(seed=seed, options={"episode": episode})
        return np.concatenate([np.ravel(x) for x in seen.values()])

    fresh, used = ParallelAdapter(Chorus()), ParallelAdapter(Chorus())
    played(used, 3)
    np.testing.assert_array_equal(opening(fresh, 1, 7), opening(used, 1, 7))
    many = {opening(fresh, seed, k).tobytes() for seed in (1, 2) for k in range(20)}
    assert len(many) > 10


class Keyed(Relay):
    """A relay that knows about episodes, as a team's environment does."""

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        super().reset(seed=7)
        self.got = (seed, dict(options or {}))
        self.infos = {a: {"key": (seed, "case"), "turn": 0} for a in ABC}


def test_an_environment_with_keys_of_its_own_gets_seed_and_episode() -> None:
    """It is reset once, with the seed itself and the episode's number, and its key is passed on."""
    adapter = AECAdapter(Keyed())
    _, infos = adapter.reset(seed=1, options={"episode": 4})
    assert adapter.env.got == (1, {"episode": 4})
    assert infos["A"]["key"] == (1, "case")
