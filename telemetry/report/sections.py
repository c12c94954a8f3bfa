"""What a run's page says in words and tables: how it ended, what came of it, what was found before it began."""

from collections.abc import Iterator
from typing import Any

from telemetry.charts import result_chart
from telemetry.figures import NONE, duration, interval, number
from telemetry.html import Html, join, table, tag
from telemetry.report.page import NOTHING, Section, box, chart_box
from telemetry.report.reading import Account, Audit, Finding, Gates, Measure
from telemetry.run_dir import NOT_ENDED, Run

GOOD, BAD, OPEN = "good", "bad", "open"
"""Looks of a verdict."""
LOOKS = {"done": GOOD, "limit": GOOD, "interrupted": OPEN, NOT_ENDED: OPEN}
"""Of a run's status; any other is bad."""
ENDINGS = {
    "gate": "A gate is closed: nothing was trained.",
    "audit": "The reward audit found an error.",
    "missing_rewards": "Too many rewards were missing.",
    "collapsed": "Training collapsed.",
    "failed": "Training did nothing.",
    "interrupted": "Stopped on request; it can be resumed.",
    "limit": "Ended at a limit of the experiment file.",
}
"""A status in a sentence, where the word alone does not say it."""


def pill(text: str, look: str) -> Html:
    """A short verdict that is coloured, and can be read without the colour."""
    return tag("span", text, class_=f"pill {look}")


def status(run: Run) -> Html:
    """How the run ended, as a verdict."""
    return pill(run.status, LOOKS.get(run.status, BAD))


def headline(account: Account) -> Html:
    """The run's name, how it ended, and what could not be read."""
    run = account.run
    parts = [tag("h1", run.name, " ", status(run)), tag("p", *_ending(run), class_="ending")]
    if account.gaps:
        parts.append(tag("ul", *(tag("li", gap) for gap in account.gaps), class_="gaps", aria_label="What is missing"))
    return join(*parts)


def _ending(run: Run) -> Iterator[str]:
    result = run.result
    if result is None:
        after = f"iteration {run.last.iteration:,} is the last on record" if run.last else "no iteration is on record"
        yield f"No result yet: the run goes on, or was killed; {after}."
        return
    if result.status in ENDINGS:
        yield f"{ENDINGS[result.status]} "
    if result.reason:
        yield f"Ended: {result.reason}"


def result(account: Account) -> Section:
    """The figures that matter, and the result beside the baselines."""
    run = account.run
    chart = result_chart(run)
    body = [_cards(run), box(chart.title, NOTHING, wide=True) if chart.empty else chart_box(chart, wide=True)]
    if run.result and run.result.role_swaps:
        rows = [[pair, number(value)] for pair, value in run.result.role_swaps.items()]
        body.append(box("When two roles exchange their policies", table(["roles", "return per episode"], rows)))
    if run.evaluation and run.evaluation.agents:
        rows = [
            [name, number(a.return_mean), number(a.tool_calls), number(a.invalid_calls)]
            for name, a in run.evaluation.agents.items()
        ]
        head = ["agent", "return", "tool calls", "invalid calls"]
        body.append(box("Each agent, per held-out episode", table(head, rows)))
    return Section(anchor="result", title="Result", body=body)


def _cards(run: Run) -> Html:
    evaluation, last = run.evaluation, run.last
    cards = {
        "score": number(run.score, ".3f"),
        "held-out return": number(evaluation.return_mean) if evaluation else NONE,
        "success": number(evaluation.success_rate, ".1%") if evaluation else NONE,
        "tool calls / episode": number(evaluation.tool_calls) if evaluation else NONE,
        "USD / episode": number(evaluation.cost_usd) if evaluation else NONE,
        "held-out episodes": f"{evaluation.episodes:,}" if evaluation else NONE,
        "iterations": f"{last.iteration:,}" if last else "0",
        "env steps": f"{last.env_steps:,}" if last else "0",
        "training time": duration(last.seconds if last else None),
    }
    ci95 = evaluation.return_ci95 if evaluation else None
    small = {"held-out return": tag("dd", f"95% {interval(ci95)}", class_="small")} if ci95 else {}
    boxes = (
        tag("div", tag("dt", name), tag("dd", value), small.get(name, Html()), class_="card")
        for name, value in cards.items()
    )
    return tag("dl", *boxes, class_="wide cards")


def decisions(episodes: dict[str, Any]) -> Section:
    """The sampled episodes; the page's script draws them."""
    if not episodes["episodes"]:
        body = [box("", tag("p", "No episode was sampled.", class_="nothing"), wide=True)]
        return Section(anchor="decisions", title="Decisions", body=body)
    notes = [tag("p", " ".join(episodes["notes"]), class_="note")] if episodes["notes"] else []
    return Section(anchor="decisions", title="Decisions", body=[tag("div", id="timeline", class_="wide"), *notes])


def audit(found: Audit | None) -> Section:
    """What the audit of the reward found, and which checks it made."""
    if found is None:
        body = [box("", tag("p", "No audit is on record.", class_="nothing"), wide=True)]
        return Section(anchor="audit", title="Audit", body=body)
    ran = [c for c in found.ran.values() if not c.skipped]
    verdict = pill("nothing stops the run", GOOD) if found.ok else pill("errors", BAD)
    told = f"{len(found.findings)} findings, {len(ran)} of {len(found.ran)} checks apply"
    body = [tag("p", verdict, " ", told, class_="wide")]
    body += [_finding(f) for f in found.findings]
    rows = [[name, c.promise, c.skipped or f"{c.seconds:.1f} s"] for name, c in found.ran.items()]
    checks = tag("details", tag("summary", "All checks"), table(["check", "what it promises", "took"], rows))
    return Section(anchor="audit", title="Audit", body=[*body, box("", checks, wide=True)])


def _finding(finding: Finding) -> Html:
    waived = finding.waived is not None
    look = OPEN if waived or finding.severity != "error" else BAD
    named = f"{finding.severity}, waived" if waived else finding.severity
    where = ", ".join(f"{k} {v}" for k, v in finding.where.items() if v not in ("", None))
    parts = [tag("p", finding.message)]
    parts += [tag("p", where, class_="soft")] if where else []
    parts += [tag("p", tag("b", "Remedy: "), finding.remedy)] if finding.remedy else []
    parts += [tag("p", tag("b", "Waived: "), finding.waived or "")] if waived else []
    numbers = ", ".join(f"{k} {number(v, '.4g')}" for k, v in finding.evidence.numbers.items())
    parts += [tag("p", numbers, class_="soft")] if numbers else []
    for title, text in (("What was seen", finding.evidence.saw), ("What was used", finding.evidence.used)):
        parts += [tag("h4", title), tag("pre", text, tabindex="0")] if text else []
    return tag("article", tag("h3", pill(named, look), " ", finding.check), *parts, class_="box wide")


def gates(found: Gates | None) -> Section:
    """What the gates measured, each figure beside its threshold."""
    if found is None:
        body = [box("", tag("p", "No gate is on record.", class_="nothing"), wide=True)]
        return Section(anchor="gates", title="Gates", body=body)
    body: list[Html] = []
    for gate in found.gates:
        verdict = OPEN if gate.not_applicable else GOOD if gate.ok else BAD
        word = "not applicable" if gate.not_applicable else "open" if gate.ok else "closed"
        rows = [_measure(m) for m in gate.measures]
        head = ["verdict", "measured", "value", "wanted", "note"]
        shown = table(head, rows) if rows else tag("p", gate.not_applicable, class_="nothing")
        inside = tag("details", tag("summary", gate.promise), shown, **({} if gate.ok else {"open": ""}))
        body.append(tag("article", tag("h3", gate.name, " ", pill(word, verdict)), inside, class_="box wide"))
    return Section(anchor="gates", title="Gates", body=body)


def _measure(measure: Measure) -> list[str]:
    value = NONE if measure.value is None else f"{measure.value:.4g} {measure.unit}".strip()
    verdict = pill("ok", GOOD) if measure.ok else pill("not ok", BAD)
    return [verdict, measure.what, value, measure.wanted, measure.note]


def settings(account: Account) -> Section:
    """Versions, and the experiment with every key."""
    run, result = account.run, account.run.result
    facts = {
        "run directory": str(run.path),
        "version": result.version or NONE if result else NONE,
        "seed": str(result.seed) if result else NONE,
        "status": run.status,
    }
    rows = [[name, value] for name, value in facts.items()]
    text = tag("pre", run.experiment or "unknown", tabindex="0")
    body = [
        box("Version", table(["part", "value"], rows), wide=True),
        box("", tag("details", tag("summary", "experiment.yaml, with every key written out"), text), wide=True),
    ]
    return Section(anchor="settings", title="Versions and settings", body=body)
