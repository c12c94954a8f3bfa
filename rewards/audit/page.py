"""The report as one HTML file that needs no network: every finding with its smallest example side by side."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from rewards.audit.findings import Finding, Report
from rewards.audit.printed import ORDER, counted, sides, verdict

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2025; background: #fff }
h1 { font-size: 1.4rem }
h2 { font-size: 1.1rem; margin-top: 2rem }
article { border: 1px solid #d5dae1; border-left-width: 5px; border-radius: 4px; padding: .6rem 1rem; margin: 1rem 0 }
.error { border-left-color: #c62828 }
.warning { border-left-color: #e0a100 }
.note, .waived { border-left-color: #9aa3af }
.bad { color: #c62828 }
.good { color: #1b7a35 }
.where, .numbers { color: #5a6472; font-size: .9em }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f6f8; padding: .6rem; margin: .2rem 0;
      border-radius: 4px }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #e4e8ed }
@media (prefers-color-scheme: dark) {
  body { background: #15181c; color: #dfe3e8 }
  pre { background: #20252b }
  article, td, th { border-color: #39414b }
  .where, .numbers { color: #9aa6b5 }
  .bad { color: #ff7b72 }
  .good { color: #56d364 }
}
"""
_WHOLE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style></head><body>
{body}</body></html>
"""


def page(report: Report) -> str:
    """The whole page. All that comes from a team, a term or a label is escaped."""
    findings = sorted(report.findings, key=lambda f: ORDER.index(f.severity))
    body = [
        f"<h1>Reward audit of {escape(report.subject)}</h1>",
        f'<p class="{"good" if report.ok else "bad"}"><strong>{escape(verdict(report).plain)}</strong></p>',
        *(_finding(f, report.waiver(f)) for f in findings),
        _waivers(report.waived),
        _checks(report),
    ]
    title = f"Reward audit of {escape(report.subject)}"
    return _WHOLE.format(title=title, style=_STYLE, body="".join(body))


def write_page(report: Report, file: Path) -> None:
    """Write the page to a file."""
    file.write_text(page(report), encoding="utf-8")


def _finding(finding: Finding, waived: str | None) -> str:
    accepted = waived is not None and finding.severity == "error"
    label = f"{finding.severity} (waived: {waived})" if accepted else finding.severity
    kind = "waived" if accepted else finding.severity
    evidence = finding.evidence
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in evidence.numbers.items())
    where = f'<span class="where">{escape(str(finding.where))}</span>'
    parts = [
        f"<strong>{escape(label)} · {escape(finding.check)}</strong> {where}",
        f"<p>{escape(finding.message)}</p>",
        f'<p class="numbers">{escape(numbers)}</p>' if numbers else "",
        _side_by_side(finding) if evidence.saw or evidence.used else "",
        f"<p>→ {escape(finding.remedy)}</p>" if finding.remedy else "",
    ]
    return f'<article class="{kind}">{"".join(parts)}</article>\n'


def _side_by_side(finding: Finding) -> str:
    left, right = sides(finding.check)
    evidence = finding.evidence
    cells = ((left, evidence.saw), (right, evidence.used))
    shown = (f"<div><em>{escape(head)}</em><pre>{escape(text or '—')}</pre></div>" for head, text in cells)
    return f'<div class="sides">{"".join(shown)}</div>'


def _waivers(waived: Mapping[str, str]) -> str:
    if not waived:
        return ""
    rows = "".join(f"<tr><td>{escape(c)}</td><td>{escape(reason)}</td></tr>" for c, reason in waived.items())
    return f"<h2>Waived</h2><table><tr><th>check</th><th>reason</th></tr>{rows}</table>"


def _checks(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(counted(report, name))}</td><td>{ran.seconds:.1f}</td>"
        f"<td>{escape(ran.skipped or ran.promise)}</td></tr>"
        for name, ran in report.ran.items()
    )
    return f"<h2>Checks</h2><table><tr><th>check</th><th>found</th><th>s</th><th>promise</th></tr>{rows}</table>"
