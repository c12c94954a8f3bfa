"""Any PettingZoo environment by its name, and what the trainer relies on in it."""

import pkgutil
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from envs.moves import IllegalMove
from envs.pettingzoo_env import describe, make
from runtime.errors import TeamError


def newest(name: str) -> str:
    """The module of a game in the version that the installed PettingZoo has."""
    package, _, game = name.rpartition(".")
    spec = find_spec(package)
    assert spec is not None
    found = [m.name for m in pkgutil.iter_modules(spec.submodule_search_locations) if m.name.startswith(f"{game}_v")]
    return f"{package}.{found[-1]}"


PURSUIT = newest("pettingzoo.sisl.pursuit")
NAMED = [
    ("pettingzoo.classic.tictactoe_v3", "aec", 2),
    ("pettingzoo.classic.leduc_holdem_v4", "aec", 2),
    ("pettingzoo.classic.connect_four_v3", "aec", 2),
    ("pettingzoo.classic.rps_v2", "parallel", 2),
    ("mpe2.simple_spread_v3", "parallel", 3),
    ("mpe2.simple_speaker_listener_v4", "parallel", 2),
    (PURSUIT, "parallel", 8),
    ("pettingzoo.sisl.multiwalker_v9", "parallel", 3),
    ("tests.envs.games:Leaving", "parallel", 3),
    ("tests.envs.games:Counting", "aec", 1),
]


def chosen(env: AECEnv[str, Any, Any] | ParallelEnv[str, Any, Any], agent: str, seen: Any, info: Any) -> Any:
    """A legal action drawn from the agent's space."""
    mask = next(
        (np.asarray(p["action_mask"], np.int8) for p in (seen, info) if isinstance(p, dict) and "action_mask" in p),
        None,
    )
    return env.action_space(agent).sample(mask)


def played(env: Any, episodes: int = 2, limit: int = 200) -> dict[str, int]:
    """Play legally; returns how many decisions each agent took."""
    turns: dict[str, int] = {}
    for episode in range(episodes):
        if isinstance(env, AECEnv):
            env.reset(seed=episode)
            for agent in env.agent_iter(limit):
                seen, _, terminated, truncated, info = env.last()
                assert env.observation_space(agent).contains(seen)
                done = terminated or truncated
                env.step(None if done else chosen(env, agent, seen, info))
                turns[agent] = turns.get(agent, 0) + (not done)
        else:
            seen, infos = env.reset(seed=episode)
            for _ in range(limit):
                if not env.agents:
                    break
                actions = {a: chosen(env, a, seen[a], infos.get(a)) for a in env.agents}
                for agent in actions:
                    turns[agent] = turns.get(agent, 0) + 1
                seen, _, _, _, infos = env.step(actions)
    return turns


@pytest.mark.parametrize(("name", "form", "agents"), NAMED)
def test_an_environment_is_made_by_its_name_and_plays(name: str, form: str, agents: int) -> None:
    """Card, board, particle and physics games, and an author's own: made, described, played legally."""
    env = make(name, {}, seed=1)
    info = describe(env)
    assert (info.form, len(info.possible_agents)) == (form, agents)
    assert set(info.action_spaces) == set(info.observation_spaces) == set(info.possible_agents)
    assert set(played(env, limit=40)) == set(info.possible_agents)
    env.close()


def test_waterworld_plays_or_says_which_version_has_it() -> None:
    """PettingZoo dropped it: where it is not there, the message says what to install."""
    name = "pettingzoo.sisl.waterworld_v4"
    if find_spec(name):
        assert len(played(make(name, {}), limit=20)) == 2
    else:
        with pytest.raises(TeamError, match=r"pip install 'pettingzoo<1\.26' pymunk"):
            make(name, {})


def test_agents_may_have_different_spaces() -> None:
    """The speaker sees 3 numbers and says one of 3 words, the listener sees 11 and moves in 5 ways."""
    info = describe(make("mpe2.simple_speaker_listener_v4", {}))
    shapes = {a: (s.shape, info.action_spaces[a].n) for a, s in info.observation_spaces.items()}  # type: ignore[attr-defined]
    assert shapes == {"speaker_0": ((3,), 3), "listener_0": ((11,), 5)}


def test_the_form_can_be_chosen() -> None:
    """Both where there are both."""
    assert isinstance(make("mpe2.simple_spread_v3", {"form": "aec"}), AECEnv)
    assert isinstance(make("mpe2.simple_spread_v3", {"form": "parallel"}), ParallelEnv)


def test_arguments_reach_the_environment() -> None:
    """Two agents instead of three, continuous moves."""
    info = describe(make("mpe2.simple_spread_v3", {"N": 2, "continuous_actions": True}))
    assert len(info.possible_agents) == 2
    assert isinstance(info.action_spaces["agent_0"], spaces.Box)


def test_reset_options_pass_through() -> None:
    """What is given to reset reaches the environment inside the guards."""
    env = make("tests.envs.games:Leaving", {})
    env.reset(options={"episode": 3})
    assert env.unwrapped.options == {"episode": 3}  # type: ignore[attr-defined]


def test_a_seed_makes_the_same_game() -> None:
    """Two made alike begin and go on alike."""
    one, other = (make("mpe2.simple_spread_v3", {}, seed=5) for _ in range(2))
    assert [one.action_space("agent_0").sample() for _ in range(9)] == [
        other.action_space("agent_0").sample() for _ in range(9)
    ]
    seen, again = one.reset(seed=3)[0], other.reset(seed=3)[0]  # type: ignore[index]
    np.testing.assert_array_equal(seen["agent_1"], again["agent_1"])


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("pettingzoo.mpe.simple_spread_v3", {}, r"write mpe2\.simple_spread_v3"),
        ("pettingzoo.classic.tictactoe_v2", {}, r"did you mean 'pettingzoo\.classic\.tictactoe_v3'"),
        ("nowhere.at_all", {}, "there is no module 'nowhere.at_all'"),
        ("pettingzoo.atari.pong_v3", {}, r"needs 'multi_agent_ale_py'.*pettingzoo\[atari\]"),
        ("mpe2.simple_spread_v3", {"max_cycle": 5}, "did you mean 'max_cycles'"),
        (PURSUIT, {"n_pursuer": 5}, "did you mean 'n_pursuers'"),
        ("mpe2.simple_spread_v3", {"form": "both"}, "it is aec or parallel"),
        ("pettingzoo.classic.tictactoe_v3", {"form": "parallel"}, "has no parallel form"),
        ("tests.envs.games:Leaving", {"form": "aec"}, "has only its parallel form"),
        ("json.decoder", {}, "neither env.. nor parallel_env"),
        ("tests.envs.games:Leavin", {}, "did you mean 'Leaving'"),
        ("tests.envs.games:nothing", {}, "made a int, which is no PettingZoo environment"),
        ("tests.envs.games:failing", {}, "RuntimeError: no licence"),
        ("tests.envs.games:nameless", {}, "possible_agents"),
        ("tests.envs.games:odd_actions", {}, "agent_0's action space MultiBinary"),
        ("tests.envs.games:endless_actions", {}, "no bounds"),
        ("tests.envs.games:shifted_actions", {}, "must begin at 0"),
        ("tests.envs.games:short_mask", {}, r"action_mask has the shape \(3,\), but there are 5"),
        ("tests.envs.games:odd_observation", {}, "observation space Sequence"),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_remedy(name: str, args: dict[str, Any], said: str) -> None:
    """Each refusal says what is wrong and what to do; no library's traceback is needed."""
    with pytest.raises(TeamError, match=said):
        make(name, args)


# -- what the trainer relies on


def test_an_illegal_move_is_an_error_and_does_not_lose_the_game() -> None:
    """PettingZoo's own wrapper would end the game as lost, with a warning: a policy's mistake would look like play."""
    env = make("pettingzoo.classic.tictactoe_v3", {})
    assert isinstance(env, AECEnv)
    env.reset(seed=0)
    env.step(4)
    with pytest.raises(IllegalMove, match=r"player_2 played 4.*legal: \[0, 1, 2, 3, 5, 6, 7, 8\]"):
        env.step(4)
    assert not any(env.terminations.values())
    env.step(0)
    assert env.agent_selection == "player_1"


def test_an_illegal_move_is_seen_in_parallel_games_and_by_masks_in_infos() -> None:
    """Wherever the mask stands."""
    leaving = make("tests.envs.games:Leaving", {})
    assert isinstance(leaving, ParallelEnv)
    leaving.reset()
    with pytest.raises(IllegalMove, match="agent_1 played 1"):
        leaving.step({"agent_0": 0, "agent_1": 1, "agent_2": 2})
    counting = make("tests.envs.games:Counting", {})
    assert isinstance(counting, AECEnv)
    counting.reset()
    with pytest.raises(IllegalMove, match="counter_0 played 0"):
        counting.step(0)


def test_agents_leave_early_and_ends_are_mixed() -> None:
    """One by one they leave; some terminate, one is truncated; who left takes no more decisions."""
    env = make("tests.envs.games:Leaving", {})
    assert isinstance(env, ParallelEnv)
    assert played(env, episodes=1) == {"agent_0": 1, "agent_1": 2, "agent_2": 3}
    env.reset()
    ends: list[tuple[bool, bool]] = []
    while env.agents:
        acting = list(env.agents)
        _, _, terminated, truncated, _ = env.step(dict.fromkeys(acting, 0))
        ends.append((any(terminated.values()), any(truncated.values())))
    assert ends == [(True, False), (True, False), (False, True)]


def test_fallen_walkers_leave_before_the_others() -> None:
    """In a real game too: the number of agents falls while the game goes on."""
    env = make(newest("pettingzoo.sisl.multiwalker"), {"terminate_on_fall": False, "max_cycles": 200}, seed=1)
    assert isinstance(env, ParallelEnv)
    env.reset(seed=1)
    alive = [len(env.agents)]
    while env.agents:
        env.step({a: env.action_space(a).sample() for a in env.agents})
        alive.append(len(env.agents))
    assert set(alive) - {0, 3}, "nobody fell while others walked on"


def test_masks_change_from_turn_to_turn() -> None:
    """In a card game the legal moves are the mask of whoever acts next, as plain 0 and 1."""
    env = make("pettingzoo.classic.leduc_holdem_v4", {})
    assert isinstance(env, AECEnv)
    masks: set[tuple[int, ...]] = set()
    for seed in range(20):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            seen, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            shown: Any = seen
            masks.add(tuple(int(m) for m in shown["action_mask"]))
            env.step(chosen(env, agent, seen, None))
    assert len(masks) > 1
    assert all(set(m) <= {0, 1} for m in masks)
