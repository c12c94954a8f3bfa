"""Whatever plays: shared policies, central critics, teammates by rule, and PettingZoo environments by name."""

from pathlib import Path

import pytest

from tests.trainers.commands import Command

pytestmark = [
    # Ray leaves its processes to themselves, and RLlib calls what it has deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SMALL = ("ppo.train_batch_size=150", "ppo.minibatch_size=64", "stop.iterations=2", "scenarios.eval.count=6")
REST = ("evaluation.every=2", "telemetry.tensorboard=false", "evaluation.role_swap=false")

GAMES = {
    "tictactoe": ("pettingzoo.classic.tictactoe_v3", '{player: {kind: encoder, roles: ["player_*"]}}'),
    "leduc": ("pettingzoo.classic.leduc_holdem_v4", "{player_0: {kind: encoder}, player_1: {kind: encoder}}"),
    "spread": ("mpe2.simple_spread_v3", '{all: {kind: encoder, roles: ["agent_*"], critic: central}}'),
    "speaker": (
        "mpe2.simple_speaker_listener_v4",
        "{speaker_0: {kind: encoder, critic: central}, listener_0: {kind: encoder}}",
    ),
}


def written(folder: Path, name: str, team: str, policies: str, rest: str = "") -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(f"name: {name}\nteam: {team}\npolicies: {policies}\nstop: {{iterations: 2}}\n{rest}")
    return file


@pytest.mark.parametrize("name", [*(pytest.param(n, marks=pytest.mark.slow) for n in ("leduc", "spread")), "tictactoe"])
def test_a_pettingzoo_environment_trains_by_name(command: Command, tmp_path: Path, name: str) -> None:
    """Two iterations, an evaluation beside random play, an export."""
    module, policies = GAMES[name]
    ran = command(*SMALL, *REST, file=written(tmp_path, name, f"{{pettingzoo: {module}}}", policies))
    assert ran.code == 0, ran.err
    assert len(ran.metrics) == 2
    assert ran.result["eval"]["episodes"] == 6
    assert ran.result["version"]
    assert "random" in ran.result["baselines"]


def test_agents_with_different_spaces_train(command: Command, tmp_path: Path) -> None:
    """Speaker and listener see and do different things; the speaker's critic sees both."""
    module, policies = GAMES["speaker"]
    ran = command(*SMALL, *REST, file=written(tmp_path, "speaker", f"{{pettingzoo: {module}}}", policies))
    assert ran.code == 0, ran.err
    assert ran.metrics[-1]["agents"].keys() == {"speaker_0", "listener_0"}


def test_a_game_without_a_policy_for_everybody_is_refused(command: Command, tmp_path: Path) -> None:
    """Exit 2: who has none, or which policy decides for nobody."""
    team = "{pettingzoo: pettingzoo.classic.tictactoe_v3}"
    one = command(file=written(tmp_path, "one", team, "{player_1: {kind: encoder}}"))
    assert one.code == 2
    assert "player_2: no policy decides for it" in one.err
    more = '{player: {kind: encoder, roles: ["player_*"]}, referee: {kind: encoder}}'
    idle = command(file=written(tmp_path, "idle", team, more))
    assert idle.code == 2
    assert "policies.referee: decides for nobody; the environment's agents are player_1, player_2" in idle.err


def test_central_critics_learn(command: Command) -> None:
    """In training the value estimate sees the whole team; the export is as small as ever."""
    both = ("policies.buyer.critic=central", "policies.clerk.critic=central")
    ran = command(*both, "stop.iterations=2", *REST)
    assert ran.code == 0, ran.err
    assert ran.metrics[-1]["agents"]["buyer"]["explained_variance"] is not None


def test_a_teammate_by_rule_plays_along(command: Command) -> None:
    """The clerk follows its rule, the buyer learns: only the buyer has figures of learning."""
    ran = command("policies.clerk={kind: scripted, use: by_the_list}", "stop.iterations=2", *REST)
    assert ran.code == 0, ran.err
    assert ran.metrics[-1]["agents"].keys() == {"buyer"}


def test_one_network_for_roles_with_other_calls_is_refused(command: Command, tmp_path: Path) -> None:
    """Exit 2, before anything is played: which roles, and how many calls or what spaces each has."""
    policies = (
        "{pair: {kind: encoder, roles: [triage, investigator], critic: central},"
        " resolver: {kind: scripted, use: expert}}"
    )
    team = command(file=written(tmp_path, "mixed", "{use: 'envs.supply_chain:team'}", policies))
    assert team.code == 2
    assert "policies.pair.roles" in team.err
    assert "triage has 3, investigator has 7" in team.err
    module, _ = GAMES["speaker"]
    game = command(
        file=written(tmp_path, "both", f"{{pettingzoo: {module}}}", '{all: {kind: encoder, roles: ["*_0"]}}')
    )
    assert game.code == 2
    assert "speaker_0 and listener_0 see or do different things" in game.err
