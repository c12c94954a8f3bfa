"""Where processes show how they are. Plain values: they go to every process of a team."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """Where metrics and traces go."""

    targets: Path
    """Directory of Prometheus' ``file_sd`` files."""
    port: int = 9464
    """The main process' port; the next free one if it is taken. All others take any."""
    otlp: str | None = None
    """Address of a collector that gets metrics and traces; None: none."""
    traces: Path | None = None
    """A file of OTLP JSON lines that gets the traces; None: none."""
