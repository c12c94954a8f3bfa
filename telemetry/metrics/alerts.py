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
    return _file(rules)


def general_rules() -> str:
    """A rule file that holds for any team: what waits, what was given up, who restarts, what fails, what collapses."""
    series = _series
    return _file([
        _rule("EventsWait", f"{series('bus.oldest_pending')} > 60", "1m",
              "{{ $labels.stream }}: an event has waited for over a minute"),
        _rule("BusDeep", f"{series('bus.depth')} > 1000", "2m",
              "{{ $labels.stream }}: {{ $value }} events are not confirmed"),
        _rule("DeadLetters", f"{series('bus.dead_letters')} > 0", "0m",
              "{{ $value }} events were given up; python -m runtime.bus lists and replays them"),
        _rule("AgentRestarts", f"increase({series('agent.restarts')}[10m]) > 3", "0m",
              "{{ $labels.agent_id }}: its process was started anew again and again"),
        _rule("AgentFails", f"increase({series('agent.failures')}[10m]) > 3", "0m",
              "{{ $labels.agent_id }}: its code raises"),
        _rule("ModelLeftAlone", f"{series('model.breaker')} == 1", "1m",
              "{{ $labels.model }} failed too often and is not asked"),
        _rule("ServingErrors", _error_share(), "2m",
              "{{ $labels.team }} {{ $labels.version }}: over 1% of requests are answered 5xx"),
        _rule("PolicyCollapsed", f"{series('agent.policy.entropy')} < 0.001", "10m",
              "{{ $labels.agent_id }}: its policy's entropy is nearly 0 nat"),
        _rule("WalGrows", f"{series('store.wal')} > 2.5e8", "5m",
              "the store's write-ahead log has {{ $value }} bytes: a reader keeps it from being emptied"),
        _missing(),
    ])  # fmt: skip


def _error_share() -> str:
    errors, all_of_them = _series("serving.errors"), _series("serving.request.duration")
    by = "sum by (team, version)"
    return f"{by} (rate({errors}[5m])) / {by} (rate({all_of_them}_count[5m])) > 0.01"


def _file(rules: Sequence[dict[str, Any]]) -> str:
    return yaml.safe_dump({"groups": [{"name": "repertory", "rules": list(rules)}]}, sort_keys=False, width=120)


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
