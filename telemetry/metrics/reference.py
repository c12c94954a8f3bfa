"""Writes the table of all metrics: ``python -m telemetry.metrics.reference``."""

from collections.abc import Iterator
from pathlib import Path

from telemetry.metrics.instruments import GEN_AI, GOLDEN, RL, Instrument

TARGET = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
"""Where it stands."""

HEAD = """# Metrics

Written by `python -m telemetry.metrics.reference` from the table that declares every instrument; change that, not this.

A run serves its metrics on `127.0.0.1`, port `telemetry.port` (9464, or the next free one; it prints which). Every
process writes itself into the run directory's `targets/`, where Prometheus finds it:

```yaml
scrape_configs:
  - job_name: repertory
    file_sd_configs: [{files: [runs/*/*/targets/*.json]}]
```

With `telemetry.otlp: http://HOST:4318`, an OpenTelemetry collector gets the same figures. Labels have few values: ids
of episodes and sessions stand in records, never here. The alert rules in a run directory's `alerts.yaml` hold the
ranges of rewards that were measured before training (gate L3).
"""

GROUPS: tuple[tuple[str, tuple[Instrument, ...]], ...] = (
    ("The four to look at first", GOLDEN),
    ("Model and tool calls (OpenTelemetry's conventions for generative AI)", GEN_AI),
    ("Training", RL),
)


def reference() -> str:
    """The whole page, as Markdown."""
    return "\n".join([HEAD, *(line for title, group in GROUPS for line in _table(title, group))]).rstrip() + "\n"


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
