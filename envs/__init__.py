"""What a team acts in: its session, its PettingZoo form, teams that come with the project, and teams from elsewhere."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.adapters.beside import Beside, Scene
    from envs.adapters.langchain import from_langchain_tools
    from envs.adapters.langgraph import langgraph_team
    from envs.adapters.openai_agents import openai_agents_team
    from envs.adapters.openai_tools import from_openai_tools
    from envs.team_env import ParallelTeamEnv, TeamEnv

__all__ = [
    "Beside",
    "ParallelTeamEnv",
    "Scene",
    "TeamEnv",
    "from_langchain_tools",
    "from_openai_tools",
    "langgraph_team",
    "openai_agents_team",
]
_HOME = {
    "Beside": "envs.adapters.beside",
    "ParallelTeamEnv": "envs.team_env",
    "Scene": "envs.adapters.beside",
    "TeamEnv": "envs.team_env",
    "from_langchain_tools": "envs.adapters.langchain",
    "from_openai_tools": "envs.adapters.openai_tools",
    "langgraph_team": "envs.adapters.langgraph",
    "openai_agents_team": "envs.adapters.openai_agents",
}


def __getattr__(name: str) -> object:
    """Import what is asked for, and PettingZoo or another framework with it, only where it is used."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
