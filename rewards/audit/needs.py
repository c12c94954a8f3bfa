"""Which tools a team is meant to learn from: those that its best play asks.

Nothing in a team says what a tool's answer may depend on. Good play shows it: what it asks for it needs to know.
"""

from collections.abc import Collection
from dataclasses import dataclass

from rewards.audit.material import Material
from runtime.records import ToolCalled

WATCHED = 20
"""Episodes of the best play that are watched."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The tools that the best play asks."""

    best: str
    """Who plays best; empty where nobody shows it."""
    tools: frozenset[str]

    @property
    def known(self) -> bool:
        """Whether somebody shows what good play needs."""
        return bool(self.best)

    def meant(self, asked: Collection[str]) -> bool:
        """Whether one of these tools is needed: then what follows from asking may depend on the truth."""
        return not self.tools.isdisjoint(asked)

    def why_not(self, asked: Collection[str]) -> str:
        """Half a sentence: why nothing is meant to be learnt from these tools."""
        named = " and ".join(sorted(asked))
        return f"and {self.best} play never asks {named}" if self.known else f"and no baseline shows who needs {named}"


def needs_of(material: Material) -> Needs:
    """What the best play asks, that ends nothing."""
    best = material.best or ""
    episodes = material.episodes(best, WATCHED) if best else []
    asked = {r.tool for e in episodes for r in e.records if isinstance(r, ToolCalled)}
    tools = material.the_team.tools
    return Needs(best, frozenset(t for t in asked if t in tools and not tools[t].ends))
