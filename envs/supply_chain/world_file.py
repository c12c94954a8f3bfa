"""The world file: causes, tools, findings, remedies, payoffs and costs, read and checked as a whole."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from runtime.errors import TeamError
from runtime.records import Closed
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN

WORLDS = Path(__file__).parent / "worlds"
"""The shipped world files."""
RESOLVE = "resolve"
"""The last role's tool."""

_RESERVED = (RESOLVE, HAND_OVER, HAND_BACK, PASS_TURN)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TOLERANCE = 1e-6
"""How far probabilities may be from summing to 1: rounding in a file written by hand."""
_SHOWN = 8
"""Problems listed in one refusal."""

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ToolEntry(Closed):
    """One tool: who has it, what it costs, what it can find and how likely that is."""

    owner: str
    cost: _Usd
    """US dollars a call."""
    findings: tuple[str, ...] = Field(min_length=1)
    likelihood: Mapping[str, tuple[_Probability, ...]]
    """By cause: the probability of each finding."""


class WorldFile(Closed):
    """Everything that defines a supply chain team's task. Findings are independent of each other given the cause."""

    name: str
    currency: Literal["USD"]
    handoff_cost: _Usd
    """US dollars each time the case changes hands."""
    agents: tuple[str, ...] = Field(min_length=2)
    """In the order in which the case passes through them; the last one chooses the remedy."""
    prior: Mapping[str, _Probability] = Field(min_length=1)
    """Probability of each cause."""
    tools: Mapping[str, ToolEntry]
    remedies: tuple[str, ...] = Field(min_length=1)
    payoff: Mapping[str, Mapping[str, _Number]]
    """US dollars by remedy, then by cause."""

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes, in the file's order."""
        return tuple(self.prior)

    def owned(self, agent: str) -> tuple[str, ...]:
        """The agent's tools, in the file's order."""
        return tuple(n for n, t in self.tools.items() if t.owner == agent)

    @property
    def payoff_rc(self) -> NDArray[np.float64]:
        """``(remedies, causes)`` payoff (USD)."""
        return np.array([[self.payoff[r][c] for c in self.causes] for r in self.remedies])

    def best_payoff(self, cause: str) -> float:
        """What the best remedy pays under that cause (USD)."""
        return max(self.payoff[r][cause] for r in self.remedies)

    def worst_payoff(self, cause: str) -> float:
        """What the worst remedy pays under that cause (USD)."""
        return min(self.payoff[r][cause] for r in self.remedies)


def words(name: str) -> str:
    """A name of the file as it is read aloud."""
    return " ".join(re.split(r"[\s_-]+", name.strip()))


def read_world(world: str) -> WorldFile:
    """The shipped world of that name, or the one in the file at that path.

    Raises:
        TeamError: there is no such world, or it is not well formed; every problem is listed.
    """
    path = WORLDS / f"{world}.json" if _NAME.fullmatch(world) else Path(world)
    if not path.is_file():
        shipped = ", ".join(sorted(p.stem for p in WORLDS.glob("*.json")))
        raise TeamError(f"world {world!r} is neither a shipped world ({shipped}) nor the path of a JSON file")
    try:
        return parse_world(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TeamError(f"world {world}: not UTF-8 text: {error}") from None
    except TeamError as error:
        raise TeamError(f"world {world}: {error}") from None


@lru_cache(maxsize=64)
def parse_world(text: str) -> WorldFile:
    """The world that the JSON text describes; the same object for the same text. Raises as read_world does."""
    try:
        found = WorldFile.model_validate(json.loads(text, object_pairs_hook=_without_twins))
    except ValidationError as error:
        raise _refusal(f"{_where(e['loc'])}: {e['msg']}" for e in error.errors()) from None
    except (ValueError, RecursionError) as error:
        raise TeamError(f"not JSON: {error}") from None
    problems = list(_problems(found))
    if problems:
        raise _refusal(problems)
    return found


def _without_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [k for k, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} stands twice in one object")
    return found


def _where(path: Iterable[str | int]) -> str:
    return ".".join(map(str, path)) or "the file"


def _refusal(problems: Iterable[str]) -> TeamError:
    listed = list(problems)
    more = f" (and {len(listed) - _SHOWN} more)" if len(listed) > _SHOWN else ""
    return TeamError("; ".join(listed[:_SHOWN]) + more)


def _problems(world: WorldFile) -> Iterator[str]:
    yield from _name_problems(world)
    if not math.isclose(sum(world.prior.values()), 1.0, abs_tol=_TOLERANCE):
        yield f"prior: the probabilities sum to {sum(world.prior.values()):g}, not to 1"
    for name, tool in world.tools.items():
        yield from _tool_problems(world, name, tool)
    yield from _coverage("payoff", world.payoff, world.remedies, "remedy")
    for remedy, row in world.payoff.items():
        yield from _coverage(f"payoff.{remedy}", row, world.causes, "cause")


def _name_problems(world: WorldFile) -> Iterator[str]:
    for what, names in (("agents", world.agents), ("remedies", world.remedies)):
        yield from _twins(what, names)
    for what, names in (("agents", world.agents), ("tools", tuple(world.tools))):
        for name in names:
            if not _NAME.fullmatch(name):
                yield f"{what}: {name!r} is no name: use letters, digits, _ and -, beginning with a letter"
    for name in _RESERVED:
        if name in world.tools:
            yield f"tools.{name}: the name is taken by a call that every team has; choose another"
    for what, names in (("remedies", world.remedies), ("prior", world.causes)):
        if not all(n.strip() for n in names):
            yield f"{what}: a name is empty"


def _twins(what: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"{what}: {name!r} stands there twice"


def _tool_problems(world: WorldFile, name: str, tool: ToolEntry) -> Iterator[str]:
    place = f"tools.{name}"
    if tool.owner not in world.agents:
        yield f"{place}.owner: {tool.owner!r} is no agent of this file ({', '.join(world.agents)})"
    elif tool.owner == world.agents[-1]:
        yield f"{place}.owner: {tool.owner!r} is the last agent, which chooses the remedy and owns no tools"
    yield from _twins(f"{place}.findings, read as words", [words(f).lower() for f in tool.findings])
    if not all(words(f) for f in tool.findings):
        yield f"{place}.findings: a name is empty"
    yield from _coverage(f"{place}.likelihood", tool.likelihood, world.causes, "cause")
    for cause, row in tool.likelihood.items():
        if len(row) != len(tool.findings):
            yield f"{place}.likelihood.{cause}: {len(row)} probabilities for {len(tool.findings)} findings"
        elif not math.isclose(sum(row), 1.0, abs_tol=_TOLERANCE):
            yield f"{place}.likelihood.{cause}: the probabilities sum to {sum(row):g}, not to 1"


def _coverage(place: str, found: Mapping[str, Any], wanted: Sequence[str], what: str) -> Iterator[str]:
    for name in wanted:
        if name not in found:
            yield f"{place}: {what} {name!r} is missing"
    for name in found:
        if name not in wanted:
            yield f"{place}: {name!r} is no {what} of this file"
