"""Writes the table of all metrics: ``python -m telemetry.metrics.reference``."""

from collections.abc import Iterator
from pathlib import Path

from telemetry.metrics.instruments import GROUPS, Instrument

TARGET = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
"""Where it stands."""

HEAD = """# Metrics

Written by `python -m telemetry.metrics.reference` from the table that declares every instrument; change that, not this.

A training run, a live team (`python -m runtime.run`) and a server (`python -m serving.run`) serve their metrics on
`127.0.0.1`, port `telemetry.port` or `--port` (9464, or the next free one; each prints which). Every other process has
a port of its own. Each writes itself into `targets/` of the run's, the live team's or the server's directory, where
Prometheus finds it (`deploy/prometheus/prometheus.yml`):

```yaml
scrape_configs:
  - job_name: repertory
    file_sd_configs: [{files: [runs/NAME/TIMESTAMP/targets/*.json, served/targets/*.json]}]
```

(Prometheus takes a wildcard in a file's name only, so each directory is named.)
Files of processes that were killed are removed by those that live. With `telemetry.otlp: http://HOST:4318` (or
`--otlp`), an OpenTelemetry collector gets the same figures; one that does not answer slows nothing, and is said once.

What agents, tools, models and sessions do is counted from the records that they commit, by one process that follows the
store's history: an agent that is killed takes no figure with it. Depths, sizes and states are looked at every two
seconds where they are. Labels have few values: ids of episodes and sessions stand in records and spans, never here. The
alert rules in a run directory's `alerts.yaml` hold the ranges of rewards that were measured before training (gate L3);
those in `deploy/prometheus/rules.yaml` hold for any team.

What it costs to be looked at is measured by `python -m bench looking`, in pairs: showing everything took 0.4% of an
iteration of training, whose CPU time was 0.994 of that without; a live session took 0.978 of the time without. Others
kept the machine busy meanwhile (load 5.6 on two cores; [benchmarks](benchmarks.md)).
"""


def reference() -> str:
    """The whole page, as Markdown."""
    return (
        "\n".join([HEAD, *(line for title, group in GROUPS.items() for line in _table(title, group))]).rstrip() + "\n"
    )


def _table(title: str, group: tuple[Instrument, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| OpenTelemetry | Prometheus | kind | unit | labels | meaning |"
    yield "|---|---|---|---|---|---|"
    for i in group:
        labels = ", ".join(f"`{label}`" for label in i.labels)
        yield f"| `{i.name}` | `{i.series}` | {i.kind} | `{i.unit}` | {labels} | {i.meaning} |"
    yield ""


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
