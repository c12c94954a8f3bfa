"""A team as a PettingZoo environment."""

import contextlib
import io
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from envs.checks.zoo import KNOWN
from envs.scenarios import Generated
from envs.team_env import ParallelTeamEnv, TeamEnv, team_env
from rewards.mix import Mix, Weighted
from rewards.terms import solved, tool_cost
from runtime.errors import TeamError
from runtime.terms import term
from runtime.types import Pipeline, Team, View
from tests.envs.toys import at_once, clinic, rounds


def quietly(test: Callable[..., object], *args: Any) -> None:
    """Run one of PettingZoo's tests without its chatter; a warning that is not known by name is an error."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        for known in KNOWN:
            warnings.filterwarnings("ignore", known)
        test(*args)


def source(team: Team, count: int | None = None) -> Generated:
    return Generated(team, "train", seed=1, count=count)


TURNS = [
    clinic(),
    clinic(turns=Pipeline(order=("nurse", "doctor"), hand_back=True), max_turns=20),
    clinic(turns=Pipeline(order=("nurse", "doctor"), handoff="verdict", verdicts=("a", "b"))),
    rounds(3),
]


@pytest.mark.parametrize("team", TURNS)
def test_pettingzoos_own_tests_pass_with_turns(team: Team) -> None:
    """api_test and seed_test, for every turn protocol."""
    quietly(api_test, TeamEnv(team, source(team), Mix([Weighted(tool_cost)])), 60)
    quietly(seed_test, lambda: TeamEnv(team, source(team)), 60)


def test_pettingzoos_own_tests_pass_when_all_act_at_once() -> None:
    """parallel_api_test and its seed test."""
    team = at_once(3)
    quietly(parallel_api_test, ParallelTeamEnv(team, source(team), Mix([Weighted(tool_cost)])), 60)
    quietly(parallel_seed_test, lambda: ParallelTeamEnv(team, source(team)), 60)


def test_the_form_follows_the_turns() -> None:
    """Simultaneous turns are parallel, all others AEC; the wrong form is refused."""
    assert isinstance(team_env(at_once(), source(at_once())), ParallelTeamEnv)
    assert isinstance(team_env(rounds(), source(rounds())), TeamEnv)
    with pytest.raises(TeamError, match="ParallelTeamEnv"):
        TeamEnv(at_once(), source(at_once()))
    with pytest.raises(TeamError, match="use TeamEnv"):
        ParallelTeamEnv(rounds(), source(rounds()))


def test_an_episode_is_chosen_by_number() -> None:
    """Episode k plays scenario k; without a number the next one, with a seed one drawn from it."""
    env = TeamEnv(clinic(), source(clinic()))
    env.reset(options={"episode": 4})
    assert env.session.scenario == source(clinic())(4)
    env.reset()
    assert env.session.scenario == source(clinic())(5)
    env.reset(seed=9)
    drawn = env.session.scenario
    env.reset(seed=9)
    assert env.session.scenario == drawn


def test_a_scenario_played_again_draws_other_chance() -> None:
    """In a later epoch the key of chance is another: the same scenario is not decided alike again and again."""
    env = TeamEnv(clinic(), source(clinic(), count=3), seed=7)
    env.reset(options={"episode": 1})
    first = env.infos["nurse"]["key"]
    env.reset(options={"episode": 4})
    assert env.infos["nurse"]["key"] != first
    assert env.infos["nurse"]["key"][1] == first[1]


def test_observations_are_text_and_mask() -> None:
    """The mask has one entry for each candidate and is 0 where a call is illegal."""
    env = TeamEnv(clinic(), source(clinic()))
    env.reset(options={"episode": 0})
    env.step(0)
    seen = env.observe("nurse")
    assert env.observation_space("nurse").contains(seen)
    assert seen["text"].startswith("case ")
    np.testing.assert_array_equal(seen["action_mask"], [0, 1, 1, 1])
    assert env.action_space("nurse").n == 4
    assert env.action_space("doctor").n == 3


def test_everybody_is_paid_the_teams_reward_at_each_step() -> None:
    """Rewards are the step's, not a sum; the team's return is kept."""
    env = TeamEnv(clinic(), source(clinic()), Mix([Weighted(solved, 10), Weighted(tool_cost)]))
    env.reset(options={"episode": 0})
    env.step(0)
    assert env.rewards == {"nurse": -1, "doctor": -1}
    env.step(3)
    ill = env.session.scenario.truth["ill"]
    env.step(["flu", "cold", "gout"].index(ill))
    assert env.rewards == {"nurse": 10, "doctor": 10}
    assert env.team_return == 9
    assert all(env.terminations.values())
    assert not any(env.truncations.values())


def test_a_cut_episode_is_truncated_for_everybody() -> None:
    """Max turns is truncation, never termination."""
    env = TeamEnv(clinic(max_turns=1), source(clinic()))
    env.reset()
    env.step(0)
    assert all(env.truncations.values())
    assert not any(env.terminations.values())


def test_a_missing_reward_reaches_the_learner_as_nan() -> None:
    """Nobody may take it for 0."""

    @term(kind="shaping")
    def broken(view: View) -> float:
        raise RuntimeError

    env = TeamEnv(clinic(), source(clinic()), Mix([Weighted(broken)]))
    env.reset()
    env.step(0)
    assert all(math.isnan(r) for r in env.rewards.values())
    assert math.isnan(env.team_return)


def test_an_action_that_is_no_candidate_is_answered() -> None:
    """A number out of range costs the agent its turn, not the run its life."""
    env = TeamEnv(clinic(), source(clinic()))
    env.reset()
    env.step(99)
    assert env.session.invalid == {"nurse": 1}


def test_a_step_before_reset_says_so() -> None:
    """No episode, no session."""
    with pytest.raises(TeamError, match="reset"):
        _ = TeamEnv(clinic(), source(clinic())).session


def test_a_simultaneous_round_is_one_step() -> None:
    """Everybody's call, everybody's observation, reward and info."""
    env = ParallelTeamEnv(at_once(1), source(at_once(1)), Mix([Weighted(tool_cost)]))
    env.reset(options={"episode": 0})
    seen, rewards, terminated, truncated, infos = env.step({"nurse": 0, "doctor": 3})
    assert rewards == {"nurse": -1, "doctor": -1}
    assert set(seen) == set(infos) == {"nurse", "doctor"}
    assert terminated == {"nurse": True, "doctor": True}
    assert truncated == {"nurse": False, "doctor": False}
    assert env.agents == []
