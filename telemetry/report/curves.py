"""A run's curves, by what a reader looks for together."""

from collections.abc import Callable

from telemetry.charts import SMOOTHING, agents_chart, calls_chart, learning_chart, rewards_chart
from telemetry.html import Html, tag
from telemetry.report.page import NOTHING, Section, box, chart_box
from telemetry.run_dir import Run
from telemetry.scalars import AgentReport, Figure

PAID: dict[str, Callable[[AgentReport], Figure]] = {
    "Raw reward per decision, mean": lambda a: a.reward_raw_mean,
    "Standardized reward per decision, mean": lambda a: a.reward_standardized_mean,
    "Raw reward per decision, standard deviation": lambda a: a.reward_raw_std,
    "Standardized reward per decision, standard deviation": lambda a: a.reward_standardized_std,
}
LEARNT: dict[str, Callable[[AgentReport], Figure]] = {
    "Entropy (nat)": lambda a: a.entropy,
    "KL to the sampling policy (nat)": lambda a: a.kl,
    "Explained variance": lambda a: a.explained_variance,
    "Clip fraction": lambda a: a.clip_fraction,
    "Gradient norm": lambda a: a.grad_norm,
    "Invalid calls an iteration": lambda a: a.invalid_calls,
}


def learning(run: Run) -> Section:
    """The return over the whole run."""
    if not run.iterations:
        return Section(anchor="learning", title="Learning", body=[box("", NOTHING, wide=True)])
    body = [smoothing(), chart_box(learning_chart({run.name: run}), wide=True)]
    return Section(anchor="learning", title="Learning", body=body)


def rewards(run: Run) -> Section | None:
    """What each agent is paid, by term, raw and standardized; None where nothing was trained."""
    if not run.agents:
        return None
    body = [chart_box(rewards_chart(run, agent)) for agent in run.agents]
    body += [chart_box(agents_chart(run, title, figure)) for title, figure in PAID.items()]
    return Section(anchor="rewards", title="Rewards", body=body)


def policies(run: Run) -> Section | None:
    """How each agent's policy changes and what it calls; None where nothing was trained."""
    if not run.agents:
        return None
    body = [chart_box(agents_chart(run, title, figure)) for title, figure in LEARNT.items()]
    body += [chart_box(calls_chart(run, agent)) for agent in run.agents]
    return Section(anchor="policies", title="Policies", body=body)


def smoothing() -> Html:
    """The switch of all curves on a page. Smoothing is for the eye: nothing is learnt from it."""
    named = {**{key: f"raw and {text}" for key, text in SMOOTHING.items()}, "raw": "raw only"}
    options = [tag("option", text, value=key) for key, text in named.items()]
    label = tag("label", "Curves ", tag("select", *options, id="smoothing"))
    return tag("div", label, class_="wide controls")
