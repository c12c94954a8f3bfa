"""Every instrument there is, with its unit and meaning. ``docs/metrics.md`` is written from this table."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Instrument:
    """One thing that is measured. Its labels have few values: ids stand on spans and records, never here."""

    name: str
    """The OpenTelemetry name."""
    kind: Kind
    unit: str
    """In UCUM, as OpenTelemetry has it; ``1`` is dimensionless."""
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = field(default=())
    """Upper bounds of a histogram's buckets, in the unit."""

    @property
    def series(self) -> str:
        """What Prometheus calls it (of a histogram: without ``_bucket``, ``_sum`` and ``_count``)."""
        plain = self.name.replace(".", "_")
        word = _WORDS.get(self.unit, "")
        named = plain if not word or plain.endswith(f"_{word}") else f"{plain}_{word}"
        return f"{named}_total" if self.kind == "counter" else named


_WORDS = {"ms": "milliseconds", "s": "seconds", "By": "bytes"}
"""Units that the exporter writes out; those in braces are notes, and left out."""

LATENCY_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144)

GOLDEN = (
    Instrument(
        "agent.step.latency",
        "histogram",
        "ms",
        "Time an agent took for one decision: policy, tool and bookkeeping. In training, a sample of decisions.",
        ("agent_id", "phase"),
        LATENCY_MS,
    ),
    Instrument(
        "llm.token.usage",
        "counter",
        "{token}",
        "Tokens that language models read and wrote.",
        ("agent_id", "direction"),
    ),
    Instrument(
        "agent.reward.value",
        "gauge",
        "1",
        "Mean raw reward of a decision, in the terms' unit.",
        ("agent_id",),
    ),
    Instrument("agent.policy.entropy", "gauge", "1", "Mean entropy of an agent's policy, nat.", ("agent_id",)),
)
"""The four that everything else is read beside."""

GEN_AI = (
    Instrument(
        "gen_ai.client.token.usage",
        "histogram",
        "{token}",
        "Tokens of one model call.",
        ("gen_ai_request_model", "gen_ai_token_type"),
        TOKENS,
    ),
    Instrument(
        "gen_ai.client.operation.duration",
        "histogram",
        "s",
        "Duration of one model call.",
        ("gen_ai_request_model", "error_type"),
        SECONDS,
    ),
    Instrument(
        "gen_ai.invoke_agent.duration", "histogram", "s", "Duration of one agent's turn.", ("agent_id",), SECONDS
    ),
    Instrument(
        "gen_ai.execute_tool.duration",
        "histogram",
        "s",
        "Duration of one tool call.",
        ("gen_ai_tool_name", "error_type"),
        SECONDS,
    ),
)
"""OpenTelemetry's conventions for generative AI."""

RL = (
    Instrument("rl.iteration", "gauge", "1", "Training iterations done."),
    Instrument("rl.env_steps", "gauge", "1", "The team's decisions so far."),
    Instrument("rl.samples_per_second", "gauge", "1/s", "Decisions sampled and learnt from per second."),
    Instrument("rl.return", "gauge", "1", "The team's raw return per episode, in the terms' unit."),
    Instrument("rl.agent.return", "gauge", "1", "An agent's raw return per episode.", ("agent_id",)),
    Instrument("rl.episode.length", "gauge", "1", "Decisions per episode."),
    Instrument("rl.reward.standardized", "gauge", "1", "Mean standardized reward per decision.", ("agent_id",)),
    Instrument(
        "rl.reward.std",
        "gauge",
        "1",
        "Standard deviation of an agent's raw rewards.",
        ("agent_id",),
    ),
    Instrument(
        "rl.reward.term", "gauge", "1", "A reward term's sum per episode, in the term's unit.", ("agent_id", "term")
    ),
    Instrument("rl.reward.missing", "counter", "1", "Trajectories dropped because a reward was missing."),
    Instrument("rl.kl", "gauge", "1", "Approximate KL divergence of the last update, nat.", ("agent_id",)),
    Instrument("rl.clip_fraction", "gauge", "1", "Share of decisions whose ratio was clipped, 0 to 1.", ("agent_id",)),
    Instrument("rl.explained_variance", "gauge", "1", "Of the returns by the critic, 1 at best.", ("agent_id",)),
    Instrument("rl.gradient_norm", "gauge", "1", "Euclidean norm of the gradient before clipping.", ("agent_id",)),
    Instrument("rl.learning_rate", "gauge", "1", "Adam's step size.", ("policy",)),
    Instrument("rl.entropy_coefficient", "gauge", "1", "Weight of the entropy bonus.", ("policy",)),
    Instrument("rl.staleness", "gauge", "1", "Updates between the weights that sampled and those that learn."),
    Instrument("rl.calls", "gauge", "1", "Share of a call among an agent's decisions, 0 to 1.", ("agent_id", "tool")),
    Instrument("rl.invalid_calls", "counter", "1", "Calls that were answered with an error.", ("agent_id",)),
    Instrument("rl.evaluation.return", "gauge", "1", "Mean return on held-out scenarios.", ("player",)),
    Instrument("rl.evaluation.score", "gauge", "1", "Held-out score: 0 is random play, 1 the optimum."),
    Instrument("rl.evaluation.success", "gauge", "1", "Success rate on held-out scenarios, 0 to 1."),
    Instrument("rl.evaluation.cost", "gauge", "{USD}", "What tools were billed per held-out episode, US dollars."),
    Instrument("rl.memory", "gauge", "By", "Resident memory of the training process."),
)
"""PPO's own figures."""

AGENTS = (
    Instrument("agent.decisions", "counter", "1", "Decisions that an agent took live.", ("agent_id",)),
    Instrument("agent.failures", "counter", "1", "Events on which an agent's code raised.", ("agent_id",)),
    Instrument("agent.redeliveries", "counter", "1", "Events dealt with that had been tried before.", ("agent_id",)),
    Instrument("agent.starts", "counter", "1", "Starts of an agent's process.", ("agent_id",)),
    Instrument("agent.restarts", "counter", "1", "Starts of its process that were not the first.", ("agent_id",)),
    Instrument("agent.cold_start", "gauge", "ms", "From its first line to readiness, last start.", ("agent_id",)),
    Instrument("agent.memory", "gauge", "By", "Resident memory of an agent's process.", ("agent_id",)),
    Instrument(
        "agent.cost",
        "counter",
        "{USD}",
        "What an agent's tools and models were billed, US dollars.",
        ("agent_id", "source"),
    ),
    Instrument("process.memory", "gauge", "By", "Resident memory of a process, by its part in the whole.", ("part",)),
)
"""Agents at work, and the processes they live in."""

TOOLS_AND_MODELS = (
    Instrument("tool.calls", "counter", "1", "Tool calls, by `ok` or what was wrong.", ("tool", "outcome")),
    Instrument(
        "tool.undone", "counter", "1", "Effects of tools that were undone, or could not be.", ("tool", "outcome")
    ),
    Instrument("tool.cost", "counter", "{USD}", "What a tool's calls were billed, US dollars.", ("tool",)),
    Instrument("model.calls", "counter", "1", "Questions to a model: `answered` or `degraded`.", ("model", "outcome")),
    Instrument("model.retries", "counter", "1", "Calls that were made again for the same question.", ("model",)),
    Instrument("model.cost", "counter", "{USD}", "What a model's answers were billed, US dollars.", ("model",)),
    Instrument("model.breaker", "gauge", "1", "1 while a model is left alone because it failed too often.", ("model",)),
)
"""What agents use."""

BUS = (
    Instrument("bus.depth", "gauge", "{event}", "Events that the slowest group has not confirmed.", ("stream",)),
    Instrument("bus.pending", "gauge", "{event}", "Events read and not yet confirmed, all groups.", ("stream",)),
    Instrument("bus.lag", "gauge", "{event}", "Events that the slowest group has not read.", ("stream",)),
    Instrument("bus.length", "gauge", "{event}", "Entries that a stream holds, those had included.", ("stream",)),
    Instrument("bus.oldest_pending", "gauge", "s", "Age of the oldest event that is not confirmed.", ("stream",)),
    Instrument("bus.redeliveries", "counter", "1", "Events that were handed out again."),
    Instrument("bus.dead_letters", "gauge", "{event}", "Events that a group has given up and nobody has replayed."),
    Instrument("bus.unsent", "gauge", "{event}", "Accepted events that are not on a stream yet."),
    Instrument("bus.scheduled", "gauge", "{event}", "Events that are to be published later."),
    Instrument("store.wal", "gauge", "By", "Size of SQLite's write-ahead log; 0 for another database."),
    Instrument("recorder.behind", "gauge", "s", "Age of the newest record when it was counted here."),
)
"""The bus, the store, and who reads along."""

SESSIONS = (
    Instrument("session.opened", "counter", "1", "Sessions that began.", ("team", "version")),
    Instrument(
        "session.ended",
        "counter",
        "1",
        "Sessions that are over: `success`, `failure`, `cut` or `given_up`.",
        ("team", "version", "outcome"),
    ),
    Instrument("session.duration", "histogram", "s", "From its opening to its end.", ("team", "version"), SECONDS),
    Instrument(
        "session.reward",
        "gauge",
        "1",
        "Mean reward of the last sessions, in the terms' unit: by the team's `terms`, or `feedback` from outside.",
        ("team", "version", "source"),
    ),
    Instrument("session.open", "gauge", "1", "Sessions that are pinned to a version now.", ("team", "version")),
    Instrument("version.ratio", "gauge", "1", "Share of new sessions that it gets, 0 to 1.", ("team", "version")),
    Instrument("version.state", "gauge", "1", "1 for the state that a version is in.", ("team", "version", "state")),
    Instrument(
        "serving.request.duration",
        "histogram",
        "s",
        "From a request's arrival at a router to the end of its answer.",
        ("team", "version", "status"),
        SECONDS,
    ),
    Instrument("serving.errors", "counter", "1", "Requests answered 5xx.", ("team", "version", "status")),
)
"""Sessions by version, and the HTTP in front of them. A team or version that is none of ours is ``none``."""

GROUPS = {
    "The four to look at first": GOLDEN,
    "Model and tool calls (OpenTelemetry's conventions for generative AI)": GEN_AI,
    "Training": RL,
    "Agents": AGENTS,
    "Tools and models": TOOLS_AND_MODELS,
    "Bus, store, recorder": BUS,
    "Sessions and versions": SESSIONS,
}
"""All of them, as the documentation shows them."""

INSTRUMENTS: dict[str, Instrument] = {i.name: i for group in GROUPS.values() for i in group}
