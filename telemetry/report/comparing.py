"""Several runs side by side: results with intervals and differences, curves over each other, settings that differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import hypot
from pathlib import Path
from typing import Any, cast

from telemetry.charts import Chart, compared_chart, learning_chart, names_of, of_agent
from telemetry.figures import NONE, duration, interval, number
from telemetry.html import Html, join, table, tag
from telemetry.report import curves
from telemetry.report.page import Section, box, chart_box
from telemetry.report.reading import Account
from telemetry.report.sections import BAD, GOOD, OPEN, pill, status
from telemetry.run_dir import Run
from telemetry.scalars import EvaluationReport, largest_kl, mean_entropy

Named = Mapping[str, Account]
"""Runs by a short name of their own."""
ABSENT = "(not set)"


def named(accounts: Sequence[Account]) -> Named:
    """The runs by the shortest ends of their paths that tell them apart."""
    parts = [account.run.path.resolve().parts for account in accounts]
    length = 2
    while length < max(map(len, parts)) and max(Counter(p[-length:] for p in parts).values()) > 1:
        length += 1
    return {str(Path(*p[-length:])): account for p, account in zip(parts, accounts, strict=True)}


def headline(runs: Named) -> Html:
    """The page's name and the runs."""
    return join(tag("h1", title(runs)), tag("p", ", ".join(runs), class_="ending"))


def title(runs: Named) -> str:
    """The page's name."""
    return f"Comparison of {len(runs)} run{'s' if len(runs) > 1 else ''}"


def results(runs: Named) -> Section:
    """Each run's held-out result, and its difference to the first run."""
    first = next(iter(runs.values())).run.evaluation
    head = ["run", "status", "seed", "score", "return", "95% interval", "difference to the first", "success", "steps"]
    rows = [_result(name, account.run, first) for name, account in runs.items()]
    said = "A difference has the 95% interval of two independent means; where it spans 0, chance may explain it."
    shown = tag("div", table([*head, "time", "version"], rows), class_="scroll", tabindex="0")
    body = [box("", shown, tag("p", said, class_="note"), wide=True)]
    return Section(anchor="result", title="Results", body=body)


def _result(name: str, run: Run, first: EvaluationReport | None) -> list[str]:
    evaluation, result = run.evaluation, run.result
    last = run.last
    return [
        name,
        status(run),
        str(result.seed) if result else NONE,
        number(run.score, ".3f"),
        number(evaluation.return_mean) if evaluation else NONE,
        interval(evaluation.return_ci95 if evaluation else None),
        difference(evaluation, first),
        number(evaluation.success_rate, ".1%") if evaluation else NONE,
        f"{last.env_steps:,}" if last else "0",
        duration(last.seconds if last else None),
        (result.version[:8] or NONE) if result else NONE,
    ]


def difference(one: EvaluationReport | None, other: EvaluationReport | None) -> str:
    """How much more one returns than the other per episode, with the 95% interval where both have one."""
    if one is None or other is None or one is other or one.return_mean is None or other.return_mean is None:
        return NONE
    mean = one.return_mean - other.return_mean
    if one.return_ci95 is None or other.return_ci95 is None:
        return f"{mean:+.2f}"
    (low, high), (its_low, its_high) = one.return_ci95, other.return_ci95
    down = hypot(one.return_mean - low, its_high - other.return_mean)
    up = hypot(high - one.return_mean, other.return_mean - its_low)
    return f"{mean:+.2f} {interval((mean - down, mean + up))}"


def learning(runs: Named) -> Section:
    """Returns over each other."""
    chart = learning_chart({name: account.run for name, account in runs.items()})
    return Section(anchor="learning", title="Learning", body=[curves.smoothing(), chart_box(chart, wide=True)])


def figures(runs: Named) -> Section | None:
    """What the policies did, and each agent's rewards by term; None where nothing was trained."""
    bare = {name: account.run for name, account in runs.items()}
    charts = [chart for chart in _charts(bare) if not chart.empty]
    body = [chart_box(chart) for chart in charts]
    return Section(anchor="figures", title="Rewards and policies", body=body) if body else None


def _charts(runs: Mapping[str, Run]) -> Iterator[Chart]:
    yield compared_chart("Entropy, mean of the agents (nat)", runs, mean_entropy)
    yield compared_chart("KL to the sampling policy, largest of the agents (nat)", runs, largest_kl)
    for agent in dict.fromkeys(name for run in runs.values() for name in run.agents):
        yield compared_chart(f"{agent}: return per episode", runs, of_agent(agent, lambda a: a.return_mean))
        for term in names_of(runs.values(), agent, lambda a: a.terms):
            title = f"{agent}: {term} per episode"
            yield compared_chart(title, runs, of_agent(agent, lambda a, term=term: a.terms.get(term)))


def settings(runs: Named) -> Section:
    """The keys of the experiment files in which the runs differ."""
    flat = {name: flattened(account.run.experiment) for name, account in runs.items()}
    keys = dict.fromkeys(key for values in flat.values() for key in values)
    differ = [key for key in keys if len({values.get(key, ABSENT) for values in flat.values()}) > 1]
    rows = [[key, *(values.get(key, ABSENT) for values in flat.values())] for key in differ]
    shown = tag("div", table(["key", *runs], rows), class_="scroll", tabindex="0")
    body = box("", shown if rows else tag("p", "None: the runs have the same settings."), wide=True)
    return Section(anchor="settings", title="Settings that differ", body=[body])


def flattened(text: str) -> dict[str, str]:
    """An experiment file's values by dotted key; none where it is not YAML of a mapping."""
    import yaml

    try:
        return dict(_leaves("", yaml.safe_load(text)))
    except yaml.YAMLError:
        return {}


def _leaves(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, part in cast("dict[Any, Any]", value).items():
            yield from _leaves(f"{key}.{name}" if key else str(name), part)
    elif key:
        yield key, str(cast("object", value))


def checks(runs: Named) -> Section:
    """What the audit and the gates said of each run."""
    rows = [[name, *_checked(account)] for name, account in runs.items()]
    body = box("", table(["run", "audit", "findings", "gates"], rows), wide=True)
    return Section(anchor="audit", title="Audits and gates", body=[body])


def _checked(account: Account) -> list[str]:
    audit, gates = account.audit, account.gates
    found = "; ".join(f"{f.severity} {f.check}: {f.message}" for f in audit.findings) if audit else NONE
    return [
        _verdict(audit.ok if audit else None, "nothing stops the run", "errors"),
        found or "none",
        _verdict(gates.ok if gates else None, "open", "closed"),
    ]


def _verdict(ok: bool | None, good: str, bad: str) -> str:
    if ok is None:
        return pill("not on record", OPEN)
    return pill(good, GOOD) if ok else pill(bad, BAD)


def gaps(runs: Named) -> Section | None:
    """What is missing in the runs; None where nothing is."""
    rows = [[name, gap] for name, account in runs.items() for gap in account.gaps]
    if not rows:
        return None
    return Section(anchor="gaps", title="What is missing", body=[box("", table(["run", "what"], rows), wide=True)])
