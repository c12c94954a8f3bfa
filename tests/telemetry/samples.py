"""A small run, as a trainer would report it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from runtime.records import (
    AnyRecord,
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Fault,
    Observed,
    Rewarded,
    Sent,
    ToolAnswered,
    ToolCall,
    ToolCalled,
)
from telemetry.metrics_file import MetricsFile
from telemetry.records_file import RecordsDir
from telemetry.scalars import (
    RESULT,
    AgentReport,
    EvaluationReport,
    Figure,
    IterationReport,
    PolicyReport,
    RunResult,
)

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Properties that hold on a machine that is busy with something else."""
BASELINES: dict[str, Figure] = {"random": -45.69, "expert": 31.4, "optimal": 54.98}
EVALUATION = EvaluationReport(
    episodes=10000,
    return_mean=51.2,
    return_ci95=(50.1, 52.3),
    score=0.9624,
    success_rate=0.91,
    tool_calls=3.4,
    cost_usd=4.75,
    baselines=BASELINES,
    baselines_ci95={"random": (-47.0, -44.3)},
)


def agent(k: int, name: str = "triage") -> AgentReport:
    return AgentReport(
        return_mean=k * 1.5,
        reward_raw_mean=k * 0.5,
        reward_raw_std=12.0,
        reward_standardized_mean=0.01,
        reward_standardized_std=0.98,
        terms={"payoff": 2.0 * k, "tool_cost": -1.25},
        entropy=1.6 / k,
        kl=0.008 + 0.001 * len(name),
        clip_fraction=0.11,
        explained_variance=0.4,
        grad_norm=0.7,
        tool_mix={'query_orders(region="EU")': 0.25, "hand_over()": 0.75},
        invalid_calls=k,
    )


def iteration(k: int, evaluation: EvaluationReport | None = None) -> IterationReport:
    return IterationReport(
        iteration=k,
        env_steps=12000 * k,
        seconds=2.5 * k,
        steps_per_second=12345.6,
        return_mean=-45.0 + 10.0 * k,
        episode_len_mean=6.5,
        agents={name: agent(k, name) for name in ("triage", "resolver")},
        policies={"triage": PolicyReport(lr=0.001, entropy_coeff=0.5)},
        evaluation=evaluation,
        memory_mb=812.0,
        timers={"sample": 1.5, "learn": 0.9},
    )


def result(run_dir: Path, status: str = "done", seed: int = 3) -> RunResult:
    return RunResult(
        status=status,
        run_dir=str(run_dir),
        version="9f2c51d0aa7e4b1c",
        seed=seed,
        iterations=10,
        env_steps=120000,
        seconds=254.0,
        eval=EVALUATION,
        baselines=BASELINES,
        score=0.9624,
    )


def episode(
    answer: str = "late", agent: str = "triage", saw: str = "case: order 4711 is overdue\nregion: EU"
) -> list[AnyRecord]:
    call = ToolCall(tool="query_orders", args={"region": "EU"})
    of: dict[str, Any] = {"correlation_id": "e7", "at": 1.0, "agent": agent, "turn": 0}
    last: dict[str, Any] = {**of, "agent": "resolver"}
    refused = Fault(code="over_budget", message="no calls left", path="$.region")
    return [
        EpisodeOpened(correlation_id="e7", at=0.0, team="supply_chain", scenario="case-7", seed=1),
        Observed(**of, text=saw, candidates=(call,), mask=(True,)),
        Decided(**of, call=call, logp=-0.5),
        ToolCalled(**of, tool="query_orders", args=call.args),
        ToolAnswered(**of, tool="query_orders", ok=True, value={"status": answer}, cost_usd=0.5),
        Sent(**of, to="resolver", payload={"note": "overdue"}),
        Rewarded(**of, term="tool_cost", value=-0.5),
        Observed(**last, text="note: overdue"),
        Decided(**last, call=ToolCall(tool="expedite")),
        ToolAnswered(**last, tool="expedite", ok=False, fault=refused),
        Rewarded(**last, term="payoff", value=70.0, scope="team"),
        Rewarded(**last, term="tone", value=None, missing="judge timed out"),
        EpisodeEnded(correlation_id="e7", at=2.0, outcome={"expedited": True}, success=True),
    ]


def write_run(run_dir: Path, iterations: int = 10, episodes: Sequence[Sequence[AnyRecord]] = (), seed: int = 3) -> Path:
    run_dir.mkdir(parents=True)
    with MetricsFile(run_dir / "metrics.jsonl") as metrics:
        for k in range(1, iterations + 1):
            metrics.append(iteration(k, EVALUATION if k % 5 == 0 else None))
    (run_dir / "result.json").write_bytes(RESULT.dump_json(result(run_dir, seed=seed)))
    (run_dir / "experiment.yaml").write_text("name: supply_chain\nseed: 3\n")
    records = RecordsDir(run_dir / "records")
    for number, told in enumerate(episodes or [episode()]):
        records.write(number, told)
    return run_dir


def refused(run_dir: Path) -> Path:
    """A run that the audit and a gate kept from training."""
    run_dir.mkdir(parents=True)
    (run_dir / "result.json").write_bytes(RESULT.dump_json(RunResult(status="audit", run_dir=str(run_dir), reason="x")))
    (run_dir / "experiment.yaml").write_text("name: supply_chain\nseed: 3\n")
    found: dict[str, Any] = {
        "severity": "error",
        "message": "the reward pays everybody",
        "remedy": "pay for success only",
        "where": {"term": "payoff", "agent": "", "step": None},
        "evidence": {"numbers": {"share": 0.99}, "saw": "saw this", "used": ""},
        "check": "nearly-constant",
        "waived": None,
    }
    known = {**found, "message": "a known thing", "waived": "accepted for now"}
    ran = {"nearly-constant": {"promise": "pay depends on play", "seconds": 0.1, "skipped": ""}}
    audit = {
        "subject": "supply_chain",
        "ok": False,
        "seconds": 1.0,
        "findings": [found, known],
        "waived": {},
        "ran": ran,
    }
    (run_dir / "audit.json").write_text(json.dumps(audit))
    slow = {"what": "resolver: mean time of a step", "ok": False, "value": 912.0, "unit": "ms", "wanted": "< 200 ms"}
    gates = [{"name": "L1", "promise": "agents answer in time", "ok": False, "measures": [slow]}]
    (run_dir / "gates.json").write_text(json.dumps({"ok": False, "seconds": 1.0, "ranges": {}, "gates": gates}))
    return run_dir
