"""What a team acts in: its session, its PettingZoo form, and the teams that come with the project."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.team_env import ParallelTeamEnv, TeamEnv

__all__ = ["ParallelTeamEnv", "TeamEnv"]


def __getattr__(name: str) -> object:
    """Import the environments, and PettingZoo with them, only where they are used."""
    if name in __all__:
        from envs import team_env

        return getattr(team_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
