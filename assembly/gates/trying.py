"""All three gates, one after the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from assembly.gates.chains import l2
from assembly.gates.measured import Gate, Gates, Measure
from assembly.gates.scraped import l3
from assembly.gates.steps import StepLimits, defaults_ms, l1
from assembly.gates.table import Opens
from assembly.training import Gates as Limits
from runtime.types import AgentId, Team
from telemetry.metrics.port import MetricsPort

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """What is tried: a team or environment with its policies as they are before training."""

    team: Team | None
    kinds: Mapping[AgentId, str]
    """Kind of policy of every agent that decides."""
    opens: Opens
    expected: Mapping[AgentId, Range]
    """Each agent's expected reward for a decision."""


Live = Callable[[], tuple[Measure, Gate]]
"""Tries the team on the live runtime: whether killed agents come back (for L1), and L2."""


def try_gates(rehearsal: Rehearsal, limits: Limits, port: MetricsPort, live: Live | None = None) -> Gates:
    """Try L1, L2 and L3; L2 in this process where there is nothing to run it live."""
    began = time.monotonic()
    agents: Sequence[AgentId] = tuple(rehearsal.kinds)
    asked = StepLimits(
        steps=limits.steps, success=limits.step_success, mean_ms=defaults_ms(rehearsal.kinds, limits.step_ms)
    )
    first, tables = l1(rehearsal.opens, agents, asked)
    tried = [first]
    if first.ok and live is not None:
        back, second = live()
        tried = [replace(first, measures=(*first.measures, back)), second]
    elif first.ok:
        tried.append(l2(rehearsal.opens, rehearsal.team, limits.chains, limits.chains_complete))
    timed = {a: [ms for t in tables for b, ms in t.took if b == a] for a in agents}
    tried.append(l3(port, timed, tables, rehearsal.expected, limits.reward_outside))
    return Gates(tried=tuple(tried), seconds=time.monotonic() - began, ranges=rehearsal.expected)
