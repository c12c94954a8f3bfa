"""L3: what is measured can be read from the metrics port, and rewards are where they should be."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from assembly.gates.measured import Gate, Measure
from assembly.gates.table import Table
from runtime.types import AgentId
from telemetry.metrics.instruments import INSTRUMENTS
from telemetry.metrics.port import MetricsPort

PROMISE = "latency and reward can be read from the metrics port, and the reward lies in its range"
SLACK = 0.2
"""How far beyond its range a reward may lie, as a share of the range's width, before it counts."""
SCRAPE_SECONDS = 5.0
"""A port on this machine answers at once; one that does not in this time is not there."""

Range = tuple[float, float]


def l3(
    port: MetricsPort,
    timed: Mapping[AgentId, Sequence[float]],
    tables: Sequence[Table],
    expected: Mapping[AgentId, Range],
    outside: float,
) -> Gate:
    """Feed what L1 saw, read it back over HTTP, and compare the rewards with their ranges."""
    rewards = {a: [r for t in tables for r in t.rewards.get(a, ())] for a in timed}
    before = scraped(port.address)
    for agent, ms in timed.items():
        for each in ms:
            port.meters.record("agent.step.latency", each, agent_id=agent, phase="gate")
        paid = [r for r in rewards[agent] if math.isfinite(r)]
        if paid:
            port.meters.record("agent.reward.value", sum(paid) / len(paid), agent_id=agent)
    after = scraped(port.address)
    measures = [
        *(_latency(port, a, len(ms), before, after) for a, ms in timed.items()),
        *(m for a in timed for m in _reward(port, a, rewards[a], after)),
        *(_in_range(a, rewards[a], expected[a], outside) for a in timed if a in expected),
    ]
    return Gate(name="L3", promise=PROMISE, measures=tuple(measures))


Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(address: str) -> Series:
    """Every sample that the port shows, by series name and labels."""
    with urlopen(address, timeout=SCRAPE_SECONDS) as answer:  # noqa: S310 - our own port
        text = cast("str", answer.read().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _key(series: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return series, frozenset(labels.items())


def _latency(port: MetricsPort, agent: AgentId, steps: int, before: Series, after: Series) -> Measure:
    name = f"{INSTRUMENTS['agent.step.latency'].series}_count"
    key = _key(name, agent_id=agent, phase="gate")
    counted = after.get(key, 0.0) - before.get(key, 0.0)
    return Measure(
        what=f"{agent}: {name} on port {port.port}",
        ok=counted == steps,
        value=counted,
        unit="steps",
        wanted=f"{steps}, as many as were taken",
    )


def _reward(port: MetricsPort, agent: AgentId, rewards: Iterable[float], after: Series) -> Iterator[Measure]:
    name = INSTRUMENTS["agent.reward.value"].series
    shown, paid = after.get(_key(name, agent_id=agent)), [r for r in rewards if math.isfinite(r)]
    mean = sum(paid) / len(paid) if paid else None
    ok = shown is not None and mean is not None and math.isclose(shown, mean, rel_tol=1e-9, abs_tol=1e-12)
    yield Measure(
        what=f"{agent}: {name} on port {port.port}",
        ok=ok,
        value=shown,
        wanted="no reward to show" if mean is None else f"{mean:.4g}, the mean of {len(paid)} decisions",
        note="every reward is missing" if mean is None else "",
    )


def _in_range(agent: AgentId, rewards: Sequence[float], expected: Range, outside: float) -> Measure:
    low, high = expected
    slack = SLACK * (high - low)
    paid = [r for r in rewards if math.isfinite(r)]
    beyond = [r for r in paid if not low - slack <= r <= high + slack]
    share = len(beyond) / max(1, len(paid))
    return Measure(
        what=f"{agent}: rewards beyond [{low:.4g}, {high:.4g}] by over {100 * SLACK:g}%",
        ok=share <= outside,
        value=100 * share,
        unit="%",
        wanted=f"<= {100 * outside:g}%",
        note=f"such as {beyond[0]:.4g}" if beyond else "",
    )
