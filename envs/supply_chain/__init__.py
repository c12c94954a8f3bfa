"""A supply chain's fault: triage, investigation, remedy. Asking costs money, and so does the wrong remedy."""

from functools import partial
from typing import Literal

from envs.supply_chain.baselines import baselines_of
from envs.supply_chain.cases import case_types, generator
from envs.supply_chain.terms import terms_of
from envs.supply_chain.tools import tools_of
from envs.supply_chain.world import SupplyWorld, sheets_of
from envs.supply_chain.world_file import RESOLVE, WorldFile, read_world, words
from runtime.errors import TeamError
from runtime.types import Pipeline, Role, Team

_SPARE_TURNS = 16
"""Decisions beyond one a tool and role: what agents may waste on calls that are refused before a case is cut."""


def team(world: str = "supply_chain_v1", handoff: Literal["notes", "verdict"] = "notes") -> Team:
    """A team that finds out why goods are missing and chooses a remedy.

    Args:
        world: a shipped world's name, or the path of a JSON file of that format.
        handoff: what travels at a hand-over: all ``notes`` gathered so far, or a ``verdict``, the suspected cause only.

    Raises:
        TeamError: the world file is not well formed, or the argument is none of those.
    """
    if handoff not in ("notes", "verdict"):
        raise TeamError(f"handoff {handoff!r} is not known: it is notes or verdict")
    file = read_world(world)
    sheets = sheets_of(file)
    return Team(
        name="supply_chain",
        roles=tuple(_role(file, a) for a in file.agents),
        tools=tools_of(file, sheets),
        turns=Pipeline(order=file.agents, handoff=handoff, verdicts=file.causes if handoff == "verdict" else ()),
        world=partial(SupplyWorld, file, sheets),
        generate=generator(file),
        terms=terms_of(file),
        baselines=baselines_of(file, sheets, handoff),
        repeats=False,
        max_turns=len(file.tools) + len(file.agents) + _SPARE_TURNS,
        case_types=case_types(file),
    )


def _role(file: WorldFile, agent: str) -> Role:
    if agent == file.agents[-1]:
        return Role(name=agent, brief=_last_brief(file), tools=(RESOLVE,))
    tools = file.owned(agent)
    asks = "; ".join(f"{t} costs {file.tools[t].cost:g} USD" for t in tools)
    following = file.agents[file.agents.index(agent) + 1]
    brief = (
        f"Find out why goods are missing, as cheaply as you can. Possible causes: {_listed(file.causes)}. "
        f"{asks or 'You have no tools of your own'}. Hand over to {following} (costs {file.handoff_cost:g} USD) "
        "when another answer would not be worth its price."
    )
    return Role(name=agent, brief=brief, tools=tools)


def _last_brief(file: WorldFile) -> str:
    return (
        f"Choose the remedy from what the others found. Possible causes: {_listed(file.causes)}. "
        f"Remedies: {_listed(file.remedies)}. A wrong remedy costs more than a cautious one."
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(words, names))
