"""What the dashboards show: each panel with its questions to Prometheus. ``deploy/grafana`` is written from this."""

from dataclasses import dataclass
from typing import Literal

from telemetry.metrics.instruments import INSTRUMENTS

Kind = Literal["lines", "number", "lanes", "table", "traces"]
"""``lanes``: time across, a lane for each label value, coloured by the value. ``traces``: asked of Tempo."""
RATE = "[$__rate_interval]"
AGENT = '{agent_id=~"$agent"}'


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to Prometheus."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    asks: tuple[Ask, ...]
    kind: Kind = "lines"
    unit: str = "short"
    """Grafana's name of it."""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    panels: tuple[Panel, ...]
    labels: tuple[tuple[str, str], ...] = ()
    """Choices at its top: their names, and the label values that they offer, as Prometheus is asked."""


def _s(name: str) -> str:
    """What Prometheus calls an instrument."""
    return INSTRUMENTS[name].series


def _mean(name: str, by: str, where: str = "") -> str:
    series = _s(name)
    return f"sum by ({by}) (rate({series}_sum{where}{RATE})) / sum by ({by}) (rate({series}_count{where}{RATE}))"


def _quantile(q: float, name: str, by: str, where: str = "") -> str:
    return f"histogram_quantile({q}, sum by (le, {by}) (rate({_s(name)}_bucket{where}{RATE})))"


def _ended(more: str = "") -> str:
    """Sessions of each version that ended, a second; ``more``: further conditions on labels."""
    return f'sum by (version) (rate({_s("session.ended")}{{team=~"$team", version=~"$version"{more}}}{RATE}))'


def _gauge(title: str, name: str, legend: str, unit: str = "short", where: str = "") -> Panel:
    return Panel(title, (Ask(f"{_s(name)}{where}", legend),), unit=unit, about=INSTRUMENTS[name].meaning)


AGENTS = (("agent", f"label_values({_s('agent.reward.value')}, agent_id)"),)
TRAINING = Board(
    "repertory-training",
    "Repertory: training",
    (
        Panel("Return and held-out return", (
            Ask(_s("rl.return"), "training"), Ask(_s("rl.evaluation.return"), "held out, {{player}}"),
        )),
        Panel("Held-out score", (Ask(_s("rl.evaluation.score")),), "number", "percentunit"),
        _gauge("Reward of a decision", "agent.reward.value", "{{agent_id}}", where=AGENT),
        _gauge("Reward terms per episode", "rl.reward.term", "{{agent_id}} {{term}}", where=AGENT),
        _gauge("Standardized reward", "rl.reward.standardized", "{{agent_id}}", where=AGENT),
        _gauge("Entropy (nat)", "agent.policy.entropy", "{{agent_id}}", where=AGENT),
        _gauge("KL divergence of an update (nat)", "rl.kl", "{{agent_id}}", where=AGENT),
        _gauge("Clipped decisions", "rl.clip_fraction", "{{agent_id}}", "percentunit", AGENT),
        _gauge("Variance explained by the critic", "rl.explained_variance", "{{agent_id}}", where=AGENT),
        _gauge("Gradient norm", "rl.gradient_norm", "{{agent_id}}", where=AGENT),
        Panel("Learning rate, entropy bonus", (
            Ask(_s("rl.learning_rate"), "lr {{policy}}"), Ask(_s("rl.entropy_coefficient"), "entropy {{policy}}"),
        )),
        _gauge("What agents call", "rl.calls", "{{agent_id}} {{tool}}", "percentunit", AGENT),
        _gauge("Decisions a second", "rl.samples_per_second", "", "ops"),
        _gauge("Memory", "rl.memory", "training", "bytes"),
        Panel("Step, 95th percentile", (
            Ask(_quantile(0.95, "agent.step.latency", "agent_id", '{phase="training"}'), "{{agent_id}}"),
        ), unit="ms"),
        Panel("Missing rewards, refused calls", (
            Ask(f"increase({_s('rl.reward.missing')}[10m])", "missing"),
            Ask(f"increase({_s('rl.invalid_calls')}[10m])", "refused {{agent_id}}"),
        )),
    ),
    AGENTS,
)  # fmt: skip
CHAINS = Board(
    "repertory-chains",
    "Repertory: decision chains",
    (
        Panel(
            "Who is slow, when", (Ask(_mean("agent.step.latency", "agent_id", AGENT), "{{agent_id}}"),), "lanes", "ms",
            "Time across, a lane for each agent, coloured by what its steps took on average. Click for the traces.",
        ),
        Panel(
            "Agents now", (
                Ask(f"sum by (agent_id) ({_s('agent.reward.value')}{AGENT})", "reward"),
                Ask(_mean("agent.step.latency", "agent_id", AGENT), "step, ms"),
                Ask(f"sum by (agent_id) (increase({_s('agent.decisions')}{AGENT}[10m]))", "decisions, 10 min"),
                Ask(f"sum by (agent_id) (increase({_s('agent.cost')}{AGENT}[10m]))", "USD, 10 min"),
            ), "table",
        ),
        Panel("Step, median and 95th percentile", (
            Ask(_quantile(0.5, "agent.step.latency", "agent_id", AGENT), "{{agent_id}} median"),
            Ask(_quantile(0.95, "agent.step.latency", "agent_id", AGENT), "{{agent_id}} 95%"),
        ), unit="ms"),
        _gauge("Reward of a decision", "agent.reward.value", "{{agent_id}}", where=AGENT),
        Panel("Decisions a second", (
            Ask(f"sum by (agent_id) (rate({_s('agent.decisions')}{AGENT}{RATE}))", "{{agent_id}}"),
        ), unit="ops"),
        Panel("Tool calls a second", (
            Ask(f"sum by (tool, outcome) (rate({_s('tool.calls')}{RATE}))", "{{tool}} {{outcome}}"),
        ), unit="ops"),
        Panel("Tool, mean duration", (
            Ask(_mean("gen_ai.execute_tool.duration", "gen_ai_tool_name"), "{{gen_ai_tool_name}}"),
        ), unit="s"),
        _gauge("Entropy (nat)", "agent.policy.entropy", "{{agent_id}}", where=AGENT),
        Panel(
            "Chains", (
                Ask(
                    '{ span.openinference.span.kind = "AGENT" && span.gen_ai.agent.name =~ "$agent" } | select('
                    "span.repertory.correlation_id, span.gen_ai.agent.name, span.repertory.reward, span.input.value, "
                    "span.output.value)"
                ),
            ), "traces",
            about="Each decision with its correlation id, reward, and what was seen and chosen; opens the whole chain.",
        ),
    ),
    AGENTS,
)  # fmt: skip
VERSIONS = '{team=~"$team", version=~"$version"}'
ROLLOUT = Board(
    "repertory-rollout",
    "Repertory: one version against another",
    (
        _gauge("Reward of a session", "session.reward", "{{version}} {{source}}", where=VERSIONS),
        _gauge("Share of new sessions", "version.ratio", "{{version}}", "percentunit", VERSIONS),
        Panel("Sessions that ended well", (
            Ask(
                f"""({_ended(', outcome="success"')} or 0 * {_ended()}) / {_ended()}""",
                "{{version}}",
            ),
        ), unit="percentunit", about="0 where none did, in the place of nothing."),
        Panel("Sessions a second", (
            Ask(f"sum by (version, outcome) (rate({_s('session.ended')}{VERSIONS}{RATE}))", "{{version}} {{outcome}}"),
        ), unit="ops"),
        Panel("Request, 95th percentile", (
            Ask(_quantile(0.95, "serving.request.duration", "version", VERSIONS), "{{version}}"),
        ), unit="s"),
        Panel("Requests by status", (
            Ask(
                f"sum by (version, status) (rate({_s('serving.request.duration')}_count{VERSIONS}{RATE}))",
                "{{version}} {{status}}",
            ),
        ), unit="ops"),
        _gauge("Open sessions", "session.open", "{{version}}", where=VERSIONS),
        Panel(
            "State of versions", (Ask(f"{_s('version.state')}{VERSIONS} == 1", "{{version}} {{state}}"),), "lanes",
            about=INSTRUMENTS["version.state"].meaning,
        ),
    ),
    (
        ("team", f"label_values({_s('session.opened')}, team)"),
        ("version", f"label_values({_s('session.opened')}, version)"),
    ),
)  # fmt: skip
BUS = Board(
    "repertory-bus",
    "Repertory: bus and actors",
    (
        _gauge("Depth", "bus.depth", "{{stream}}"),
        _gauge("Pending", "bus.pending", "{{stream}}"),
        _gauge("Oldest unconfirmed event", "bus.oldest_pending", "{{stream}}", "s"),
        Panel("Redeliveries, dead letters", (
            Ask(f"increase({_s('bus.redeliveries')}[10m])", "handed out again"),
            Ask(_s("bus.dead_letters"), "dead letters"),
        )),
        Panel("Not on a stream yet", (Ask(_s("bus.unsent"), "unsent"), Ask(_s("bus.scheduled"), "scheduled"))),
        _gauge("Store's write-ahead log", "store.wal", "{{job}}", "bytes"),
        _gauge("Cold start", "agent.cold_start", "{{agent_id}}", "ms"),
        Panel("Restarts in 10 minutes", (Ask(f"increase({_s('agent.restarts')}[10m])", "{{agent_id}}"),)),
        Panel("Memory", (
            Ask(_s("agent.memory"), "{{agent_id}}"), Ask(_s("process.memory"), "{{part}} {{instance}}"),
        ), unit="bytes"),
        Panel("Processes that answer", (Ask('sum by (job) (up{job!="prometheus"})', "{{job}}"),)),
        _gauge("Age of what is counted", "recorder.behind", "{{job}}", "s"),
    ),
)  # fmt: skip
COST = Board(
    "repertory-cost",
    "Repertory: cost",
    (
        Panel("US dollars an hour, by agent", (
            Ask(f"3600 * sum by (agent_id, source) (rate({_s('agent.cost')}{RATE}))", "{{agent_id}} {{source}}"),
        ), unit="currencyUSD"),
        Panel("US dollars an hour, by tool", (
            Ask(f"3600 * sum by (tool) (rate({_s('tool.cost')}{RATE}))", "{{tool}}"),
        ), unit="currencyUSD"),
        Panel("US dollars a session", (
            Ask(f"sum(rate({_s('agent.cost')}{RATE})) / sum(rate({_s('session.ended')}{RATE}))"),
        ), "number", "currencyUSD"),
        Panel("Tokens a second", (
            Ask(f"sum by (agent_id, direction) (rate({_s('llm.token.usage')}{RATE}))", "{{agent_id}} {{direction}}"),
        )),
        Panel("Questions to models", (
            Ask(f"sum by (model, outcome) (rate({_s('model.calls')}{RATE}))", "{{model}} {{outcome}}"),
            Ask(f"sum by (model) (rate({_s('model.retries')}{RATE}))", "{{model}} again"),
        ), unit="ops"),
        Panel("Held-out cost per episode", (Ask(_s("rl.evaluation.cost")),), unit="currencyUSD"),
    ),
)  # fmt: skip
BOARDS = (TRAINING, CHAINS, ROLLOUT, BUS, COST)
"""All of them."""
