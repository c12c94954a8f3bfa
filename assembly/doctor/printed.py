"""Findings for people and for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from assembly.doctor.examining import Finding

MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}


def told(findings: Sequence[Finding], *, all_of_them: bool = True) -> str:
    """One line a service; below what is not well: where it is declared, what was seen, what to do."""
    width = max((len(f.name) for f in findings), default=0)
    shown = findings if all_of_them else [f for f in findings if f.state != "ok"]
    return "\n".join(line for f in shown for line in _lines(f, width))


def _lines(finding: Finding, width: int) -> list[str]:
    head = f"{MARKS[finding.state]}  {finding.name:{width}}  {finding.declared}"
    if finding.state == "ok":
        return [f"{head}: {finding.seen}"]
    told = [head, f"         declared  {finding.where}", f"         seen      {finding.seen}"]
    return [*told, f"         do        {finding.remedy}"] if finding.remedy else told


def as_json(findings: Sequence[Finding]) -> str:
    """``{"ok": bool, "findings": [{name, declared, where, state, seen, remedy, ms}, …]}``."""
    report: dict[str, Any] = {
        "ok": all(f.state != "failed" for f in findings),
        "findings": [asdict(f) for f in findings],
    }
    return json.dumps(report, indent=1)
