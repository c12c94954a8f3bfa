"""The report for a terminal: what stops the run first, each with its smallest example side by side."""

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewards.audit.findings import Finding, Report

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
ORDER = ("error", "warning", "note")
"""Severities, what stops the run first."""
_KNOWN_AND_USED = ("what could be known", "what gave it away, or what the reward used")
_SIDES = {
    "human-agreement": ("what the agent saw", "what it did"),
    "reference-policies": ("good play", "what is paid as much"),
    "sign": ("the better one", "the worse one"),
    "dominated": ("one", "the other"),
    "constant": ("one run", "another one"),
    "nearly-constant": ("one run", "another one"),
}


def print_report(report: Report, console: Console | None = None) -> None:
    """Print every finding, the waivers with their reasons, and the time each check took."""
    out = console or Console()
    for finding in sorted(report.findings, key=lambda f: ORDER.index(f.severity)):
        out.print(_finding(finding, report.waiver(finding)))
    out.print(_ran(report))
    for check, reason in report.waived.items():
        used = any(check in (f.check, f"{f.check}:{f.where.term}") and f.severity == "error" for f in report.findings)
        out.print(
            Text(f"waived: {check}: {reason}" + ("" if used else " (it found no error: the waiver can go)"), "magenta")
        )
    out.print(verdict(report))


def verdict(report: Report) -> Text:
    """The last line."""
    many = len(report.errors)
    if report.ok:
        return Text(f"audit of {report.subject}: nothing stops the run ({report.seconds:.1f} s)", "bold green")
    return Text(f"audit of {report.subject}: {many} error{'s' * (many != 1)} ({report.seconds:.1f} s)", "bold red")


def _finding(finding: Finding, waived: str | None) -> RenderableType:
    label = f"{finding.severity} (waived)" if waived and finding.severity == "error" else finding.severity
    head = Text.assemble(
        (label, _STYLES[finding.severity]), "  ", (finding.check, "bold"), "  ", (str(finding.where), "cyan")
    )
    parts: list[RenderableType] = [Text(finding.message)]
    evidence = finding.evidence
    if evidence.numbers:
        parts.append(Text(_numbers(evidence.numbers), "dim"))
    if evidence.saw or evidence.used:
        parts.append(_side_by_side(finding))
    if finding.remedy:
        parts.append(Text(f"-> {finding.remedy}", "green"))
    return Group(head, Padding(Group(*parts), (0, 0, 1, 4)))


def _numbers(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def sides(check: str) -> tuple[str, str]:
    """What the two sides of a finding's smallest example are."""
    return _SIDES.get(check, _KNOWN_AND_USED)


def counted(report: Report, check: str) -> str:
    """What a check found, in a few words."""
    if report.ran[check].skipped:
        return "not applicable"
    counts = [sum(f.severity == s for f in report.of(check)) for s in ORDER]
    return ", ".join(f"{n} {s}{'s' * (n != 1)}" for n, s in zip(counts, ORDER, strict=True) if n) or "ok"


def _side_by_side(finding: Finding) -> Table:
    table = Table(*sides(finding.check), show_lines=False, expand=True)
    table.add_row(Text(finding.evidence.saw), Text(finding.evidence.used))
    return table


def _ran(report: Report) -> Table:
    table = Table("check", "found", "s", "promise", box=None, pad_edge=False)
    for name, ran in report.ran.items():
        table.add_row(name, counted(report, name), f"{ran.seconds:.1f}", ran.skipped or ran.promise)
    return table
