"""Before training: is the reward honest, and can the team do its work? Both are answered before a run is stopped."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from assembly.build import Build, KeyedStandardizer
from assembly.gates.measured import Gates
from assembly.gates.printed import print_gates
from assembly.gates.steps import defaults_ms
from assembly.gates.trying import try_gates
from assembly.stage import material_of
from rewards.audit.auditing import audit
from rewards.audit.findings import Report
from rewards.audit.material import Evaluating, Material
from rewards.audit.printed import print_report
from telemetry.durable import replace_file
from telemetry.metrics.alerts import alert_rules
from telemetry.metrics.port import MetricsPort
from telemetry.progress import RunConsole
from trainers.evaluate import try_out
from trainers.live_gate import live_gate
from trainers.prepare import Prepared
from trainers.rehearsal import rehearsal, untrained

AUDIT_FILE, GATES_FILE, ALERTS_FILE = "audit.json", "gates.json", "alerts.yaml"
"""In the run directory."""
EVALUATED = 20
"""Held-out episodes that the audit watches the statistics over."""


def audited(build: Build, directory: Path, prepared: Prepared | None, console: RunConsole) -> tuple[Material, Report]:
    """Audit the reward, print what was found and write it down."""
    material = material_of(build, evaluating=None if prepared is None else _evaluating(build, prepared))
    settings = build.experiment.rewards.audit
    report = audit(material, None, {w.check: w.reason for w in settings.waive}, settings.checks)
    print_report(report, console)
    replace_file(directory / AUDIT_FILE, json.dumps(report.state(), indent=1, default=str))
    return material, report


def gated(build: Build, directory: Path, prepared: Prepared, material: Material, port: MetricsPort) -> Gates:
    """Try the gates, and write down what they measured and the alert rules that follow."""
    tried = rehearsal(build, prepared, material)
    alive = build.team is not None and build.experiment.gates.live
    gates = try_gates(
        tried, build.experiment.gates, port, partial(live_gate, build, prepared, directory) if alive else None
    )
    replace_file(directory / GATES_FILE, json.dumps(gates.state(), indent=1))
    limits = defaults_ms(tried.kinds, build.experiment.gates.step_ms)
    replace_file(directory / ALERTS_FILE, alert_rules(tried.expected, limits))
    return gates


def vetted(
    build: Build, directory: Path, prepared: Prepared, port: MetricsPort, console: RunConsole
) -> tuple[Report, Gates]:
    """Audit and gates, both printed."""
    material, report = audited(build, directory, prepared, console)
    gates = gated(build, directory, prepared, material, port)
    print_gates(gates, console)
    return report, gates


def already_vetted(directory: Path) -> bool:
    """Whether an earlier start of the run passed."""
    return all(_ok(directory / name) for name in (AUDIT_FILE, GATES_FILE))


def _ok(file: Path) -> bool:
    """Whether a report says so; one that cannot be read says nothing."""
    try:
        return json.loads(file.read_text())["ok"] is True
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _evaluating(build: Build, prepared: Prepared) -> Evaluating:
    """An evaluation as the run will hold it, with the statistics that it must not touch."""
    kept: KeyedStandardizer | None = prepared.standardizer
    statistics: dict[str, Any] = {}
    if kept is not None:
        statistics["standardizer"] = kept.state
    for name, featurizer in prepared.featurizers.items():
        if featurizer is not None:
            statistics[f"features of {name}"] = featurizer.features.state
    seats = untrained(build, prepared)
    count = min(EVALUATED, build.held_out or EVALUATED)
    return Evaluating(statistics, lambda: try_out(build, seats, range(count)))
