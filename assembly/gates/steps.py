"""L1: every agent can be asked a hundred times in a row, in time, alone or beside others, and after it was killed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean

import numpy as np

from assembly.gates.measured import Gate, Measure
from assembly.gates.table import Opens, Table, TeamTable
from envs.restore import restored
from runtime.errors import UserCodeError
from runtime.types import AgentId

PROMISE = "agents answer every time, in time, share nothing, and come back"
EPISODES_PER_STEP = 40
"""Episodes played for each step wanted before an agent that seldom has a turn is given up."""
BESIDE = 6
"""Episodes played alone and then side by side."""
KILLED = 10
"""Episodes in which everybody is killed before every step."""


@dataclass
class Steps:
    """What an agent's steps were like."""

    ms: list[float] = field(default_factory=list[float])
    failed: list[str] = field(default_factory=list[str])

    @property
    def taken(self) -> int:
        """Steps that were tried."""
        return len(self.ms) + len(self.failed)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLimits:
    """What L1 asks for."""

    steps: int
    """Consecutive steps of each agent."""
    success: float
    """Share that must succeed, 0 to 1."""
    mean_ms: Mapping[AgentId, float]
    """What an agent's steps may take on average, ms."""


def measured_steps(opens: Opens, agents: Sequence[AgentId], steps: int) -> tuple[dict[AgentId, Steps], list[Table]]:
    """Play until every agent has taken so many steps; also the episodes that were played."""
    found = {a: Steps() for a in agents}
    tables: list[Table] = []
    for episode in range(EPISODES_PER_STEP * steps):
        if all(s.taken >= steps for s in found.values()):
            break
        try:
            tables.append(opens(episode))
            while not tables[-1].over:
                tables[-1].step()
        except Exception as error:  # noqa: BLE001 - whatever a step raises is what the gate has to say
            _failed(found, tables[-1] if tables else None, error)
        for agent, ms in tables[-1].took if tables else ():
            found[agent].ms.append(ms)
    return found, tables


def _failed(found: Mapping[AgentId, Steps], table: Table | None, error: Exception) -> None:
    """Note a step that raised for those whose turn it was."""
    told = str(error) if isinstance(error, UserCodeError) else f"{type(error).__name__}: {error}"
    for agent in (table.to_act if table is not None else ()) or found:
        found[agent].failed.append(told)


def judged_steps(found: Mapping[AgentId, Steps], limits: StepLimits) -> Iterator[Measure]:
    """Success and mean time of every agent."""
    for agent, steps in found.items():
        ms = steps.ms[: limits.steps]
        share = len(ms) / max(steps.taken if steps.failed else len(ms), 1)
        enough = steps.taken >= limits.steps
        note = steps.failed[0] if steps.failed else "" if enough else f"had only {steps.taken} turns"
        yield Measure(
            what=f"{agent}: {min(steps.taken, limits.steps)} steps in a row",
            ok=share >= limits.success and enough,
            value=100 * share,
            unit="%",
            wanted=f">= {100 * limits.success:g}% of {limits.steps}",
            note=note,
        )
        if ms:
            limit = limits.mean_ms[agent]
            yield Measure(
                what=f"{agent}: mean time of a step",
                ok=fmean(ms) < limit,
                value=fmean(ms),
                unit="ms",
                wanted=f"< {limit:g} ms",
                note=f"99th percentile {np.percentile(ms, 99):.1f} ms",
            )


def shares_nothing(opens: Opens) -> Measure:
    """Episodes side by side, step by step, must go as they do alone."""
    alone = [_played(opens(k)).trace() for k in range(BESIDE)]
    tables = [opens(k) for k in range(BESIDE)]
    for turn in count():
        going = [t for t in tables if not t.over]
        if not going:
            break
        going[turn % len(going)].step()
    apart = next((k for k, t in enumerate(tables) if not _same(t.trace(), alone[k])), None)
    note = (
        ""
        if apart is None
        else f"episode {apart} went another way beside others: {_first(alone[apart], tables[apart])}"
    )
    return Measure(
        what="two sessions share no state", ok=apart is None, wanted="the same alone and side by side", note=note
    )


def _played(table: Table) -> Table:
    while not table.over:
        table.step()
    return table


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(repr(a) == repr(b) for a, b in zip(one, other, strict=True))


def _first(alone: Sequence[object], beside: Table) -> str:
    for a, b in zip(alone, beside.trace(), strict=False):
        if repr(a) != repr(b):
            return f"{a!r:.200} became {b!r:.200}"
    return "it has another length"


def comes_back(opens: Opens) -> Measure | None:
    """Killed before every step, an agent goes on from the records as if nothing had been. None: it is no team's."""
    broken = ""
    killed = 0
    for episode in range(KILLED):
        table, whole = opens(episode), _played(opens(episode))
        if not isinstance(table, TeamTable):
            return None
        while not table.over and not broken:
            killed += 1
            session = table.session
            table.session = restored(session.team, session.scenario, session.records)
            table.step()
        if not broken and not _same(table.trace(), whole.trace()):
            broken = f"episode {episode} went another way: {_first(whole.trace(), table)}"
    return Measure(
        what="a killed agent comes back",
        ok=not broken,
        value=killed,
        unit="kills",
        wanted="every session ends as it would have",
        note=broken or "in this process: the session is rebuilt from its records",
    )


def l1(opens: Opens, agents: Sequence[AgentId], limits: StepLimits) -> tuple[Gate, list[Table]]:
    """The gate, and the episodes it played to the end."""
    found, ended = measured_steps(opens, agents, limits.steps)
    measures = list(judged_steps(found, limits))
    if all(m.ok for m in measures if m.unit == "%"):
        measures.append(shares_nothing(opens))
        measures += [m] if (m := comes_back(opens)) else []
    return Gate(name="L1", promise=PROMISE, measures=tuple(measures)), ended


def defaults_ms(kinds: Mapping[AgentId, str], asked: float | None) -> dict[AgentId, float]:
    """What a step may take, ms: what the file says, or by kind of policy."""
    return {a: asked or MEAN_MS.get(k, 200.0) for a, k in kinds.items()}


MEAN_MS: dict[str, float] = {"encoder": 200.0, "scripted": 200.0, "causal_lm": 5000.0, "prompted": 20_000.0}
"""Mean time of a step by kind of policy, ms: a language model on a CPU takes seconds, one far away longer still."""
