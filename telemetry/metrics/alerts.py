"""Alert rules for Prometheus, with the ranges that a run measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from telemetry.metrics.instruments import INSTRUMENTS

Range = tuple[float, float]
SLACK = 0.2
"""How far beyond its measured range a mean reward may lie, as a share of the range's width."""


def alert_rules(expected: Mapping[str, Range], mean_ms: Mapping[str, float]) -> str:
    """A rule file: rewards out of the range that was measured, slow agents, missing rewards, no figures at all.

    Args:
        expected: each agent's lowest and highest reward for a decision, in the terms' unit.
        mean_ms: what each agent's step may take on average, ms.
    """
    rules = [
        *(_rewards(agent, low, high) for agent, (low, high) in sorted(expected.items())),
        *(_latency(agent, limit) for agent, limit in sorted(mean_ms.items())),
        _missing(),
        *_silent(sorted(mean_ms)),
    ]
    return yaml.safe_dump({"groups": [{"name": "repertory", "rules": rules}]}, sort_keys=False, width=120)


def _series(name: str) -> str:
    return INSTRUMENTS[name].series


def _rule(alert: str, expr: str, lasting: str, summary: str) -> dict[str, Any]:
    return {"alert": alert, "expr": expr, "for": lasting, "annotations": {"summary": summary}}


def _rewards(agent: str, low: float, high: float) -> dict[str, Any]:
    slack = SLACK * (high - low)
    one = f'{_series("agent.reward.value")}{{agent_id="{agent}"}}'
    expr = f"{one} < {low - slack:.6g} or {one} > {high + slack:.6g}"
    return _rule("RewardOutOfRange", expr, "1m", f"{agent}: mean reward is outside [{low:.4g}, {high:.4g}]")


def _latency(agent: str, limit: float) -> dict[str, Any]:
    name = _series("agent.step.latency")
    mine = f'{{agent_id="{agent}"}}'
    expr = f"sum(rate({name}_sum{mine}[5m])) / sum(rate({name}_count{mine}[5m])) > {limit:g}"
    return _rule("SlowAgent", expr, "2m", f"{agent}: a step takes more than {limit:g} ms on average")


def _missing() -> dict[str, Any]:
    expr = f"increase({_series('rl.reward.missing')}[10m]) > 0"
    return _rule(
        "MissingRewards", expr, "0m", "a reward term failed; its trajectories are dropped, not counted as zero"
    )


def _silent(agents: Sequence[str]) -> list[dict[str, Any]]:
    name = _series("agent.reward.value")
    return [
        _rule("NoReward", f'absent({name}{{agent_id="{a}"}})', "10m", f"{a}: no reward has been seen for ten minutes")
        for a in agents
    ]
