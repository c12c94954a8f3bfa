"""Processes of samplers that die: all at once by the team's own doing, which is told."""

from tests.trainers.commands import Command


def test_a_team_that_ends_its_process_ends_the_run(command: Command) -> None:
    """os._exit in every sampler: none is waited for; exit 1 with what may be behind it."""
    settings = ("evaluation.every=100", "evaluation.role_swap=false", "scenarios.eval.count=5")
    dies = ("team.args={burns: dies, from_case: 1200}", "resources.env_runners=2", "stop.iterations=40")
    ran = command(*dies, *settings, "telemetry.tensorboard=false")
    assert ran.code == 1, ran.out
    assert "the processes of all 2 samplers died" in ran.err
    assert "os._exit" in ran.err
    assert "--resume" in ran.err
