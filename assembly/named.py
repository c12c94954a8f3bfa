"""What a file names: a team, a reward term, anything that Python can import.

It is read wherever a version plays, so it imports little.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from assembly.fit import fitting
from assembly.sections import TeamRef
from rewards.terms import TERMS
from runtime.errors import TeamError
from runtime.types import RewardTerm, Team


def attribute(reference: str) -> Any:
    """What ``package.module:attribute`` names."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def load_team(ref: TeamRef) -> Team:
    """The team a file names: a Team value, or what its function returns for the arguments. Raises TeamError."""
    assert ref.use is not None
    found = attribute(ref.use)
    team = found if isinstance(found, Team) else found(**ref.args)
    if not isinstance(team, Team):
        raise TeamError(f"{ref.use} gives {type(team).__name__}, not a Team")
    return fitting(team)


def reward_term(use: str, args: Mapping[str, Any], own: Mapping[str, RewardTerm]) -> RewardTerm:
    """A term by name (the team's own, then the library's) or by ``module:attribute``. Raises TeamError."""
    known = {**TERMS, **own}
    found: Any = attribute(use) if ":" in use else known.get(use)
    if found is None:
        raise TeamError(f"there is no reward term {use!r}: {', '.join(sorted(known))}")
    term = found if isinstance(found, RewardTerm) else found(**args)
    if not isinstance(term, RewardTerm):
        raise TeamError(
            f"reward term {use}: {type(term).__name__} is not a RewardTerm; make one with runtime.terms.term"
        )
    return term
