"""What sampling hands to learning: columns per module, no episode objects.

Rows are stored in the order they were computed; at the end of a fragment the trajectories, each a list of row numbers,
put them into order. A trajectory that was cut is followed by one row more, whose observation the critic will value.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ray.rllib.core.columns import Columns

from runtime.types import AgentId

ModuleID = str
Arrays = dict[str, np.ndarray]
"""Named arrays with one row a decision."""
AGENT = "agent"
"""Column: whose row it is, as an index into ``Fragment.agents``."""


def concatenated(parts: Sequence[Any]) -> Any:
    """Arrays, or dicts of arrays, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mapping):
        return {k: concatenated([p[k] for p in parts]) for k in parts[0]}
    return np.concatenate(parts)


def taken(column: Any, rows: np.ndarray) -> Any:
    """Those rows of an array or of a dict of arrays."""
    return {k: v[rows] for k, v in column.items()} if isinstance(column, Mapping) else column[rows]


@dataclass(frozen=True, slots=True)
class Fragment:
    """What ``sample()`` returns, in a list as RLlib expects; RLlib asks it for its length and its steps."""

    columns: Mapping[ModuleID, dict[str, Any]]
    """Observations, actions, log p, raw rewards, ends and ``loss_mask`` (False for a bootstrap row) per module."""
    agents: tuple[AgentId, ...]
    steps: int
    """Env steps taken."""

    def __len__(self) -> int:
        return self.steps

    def env_steps(self) -> int:
        """Env steps taken."""
        return self.steps

    def agent_steps(self) -> int:
        """Decisions in it."""
        return int(sum(c[Columns.LOSS_MASK].sum() for c in self.columns.values()))


@dataclass(slots=True)
class Trajectory:
    """One agent's decisions of one episode, as far as they lie in one fragment."""

    agent: AgentId
    rows: list[int]
    terminated: bool
    last: Any = None
    """The raw observation after the last decision, where it was cut and has one."""
    state: np.ndarray | None = None
    """What a central critic knew then."""
    next_row: int | None = None
    """The row of the next decision, where it was cut and that decision is made already."""


@dataclass(slots=True)
class Rows:
    """One module's part of a fragment in the making."""

    parts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    rewards: list[float] = field(default_factory=list)
    done: list[Trajectory] = field(default_factory=list)

    def add(self, columns: Mapping[str, Any], count: int) -> int:
        """Store a batch; the number of its first row."""
        first = len(self.rewards)
        for name, values in columns.items():
            self.parts[name].append(values)
        self.rewards.extend([0.0] * count)
        return first

    def whole(self) -> dict[str, Any]:
        """All rows, in the order they were computed."""
        return {name: concatenated(values) for name, values in self.parts.items()}

    def cut(self) -> list[Trajectory]:
        """The trajectories whose last observation is still to be featurized, in order."""
        return [t for t in self.done if not t.terminated and t.next_row is None]


class Layout:
    """Trajectory after trajectory, each cut one followed by its bootstrap row: who lies where."""

    def __init__(self, done: Iterable[Trajectory], count: int, codes: Mapping[AgentId, int]) -> None:
        rows: list[int] = []
        agents: list[int] = []
        terminated: list[int] = []
        cut: list[int] = []
        phantom = count
        for t in done:
            rows += t.rows
            (terminated if t.terminated else cut).append(len(rows) - 1)
            if not t.terminated:
                rows.append(phantom if t.next_row is None else t.next_row)
                phantom += t.next_row is None
            agents += [codes[t.agent]] * (len(rows) - len(agents))
        self.rows = np.asarray(rows)
        """Row numbers in order; those past the stored ones are featurized last observations."""
        self.agents = np.asarray(agents, np.int32)
        self.terminated = _at(terminated, len(rows))
        self.cut = _at(cut, len(rows))
        self.real = ~_at([i + 1 for i in cut], len(rows))
        """False for a bootstrap row."""


def _at(places: list[int], size: int) -> np.ndarray:
    flags = np.zeros(size, bool)
    flags[places] = True
    return flags


def ordered(
    whole: Mapping[str, Any], rows: Rows, bootstrap: Mapping[str, np.ndarray] | None, codes: Mapping[AgentId, int]
) -> dict[str, Any]:
    """The columns of a module.

    Args:
        whole: all its rows, in the order they were computed.
        rows: the same, with rewards and trajectories, of which there is one at least.
        bootstrap: featurized last observations of ``rows.cut()``; None where there are none.
        codes: number of each agent.
    """
    layout = Layout(rows.done, len(rows.rewards), codes)
    observations = whole[Columns.OBS]
    if bootstrap is not None:
        observations = concatenated([observations, bootstrap])
    safe = np.where(layout.real, layout.rows, layout.rows[0])
    columns: dict[str, Any] = {name: taken(column, safe) for name, column in whole.items() if name != Columns.OBS}
    columns[Columns.OBS] = taken(observations, layout.rows)
    columns[Columns.REWARDS] = np.where(layout.real, np.asarray(rows.rewards, np.float32)[safe], np.float32(0.0))
    columns[Columns.TERMINATEDS], columns[Columns.TRUNCATEDS] = layout.terminated, layout.cut
    columns[Columns.LOSS_MASK], columns[AGENT] = layout.real, layout.agents
    return columns
