"""A collector that may be away: it slows nothing, and that it is away is said once."""

import logging

LOG = logging.getLogger(__name__)
TIMEOUT_S = 2.0
"""A collector that takes longer (s) is given up until the next export."""
NOISY = (
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.http.transport",
    "opentelemetry.exporter.otlp.common",
)
"""Loggers that tell every single failure."""


def signal_url(address: str, signal: str) -> str:
    """Where a collector takes ``metrics`` or ``traces``."""
    return f"{address.rstrip('/')}/v1/{signal}"


class Collector:
    """What is known of a collector: whether it answers.

    Args:
        address: where it is.
        signal: what it gets: ``metrics`` or ``traces``.
    """

    def __init__(self, address: str, signal: str) -> None:
        self.address, self.signal = address.rstrip("/"), signal
        self.url = signal_url(address, signal)
        self.away = False
        for name in NOISY:
            logging.getLogger(name).addFilter(_nothing)

    def told(self, *, ok: bool) -> None:
        """Note how an export went; a change is said."""
        if ok and self.away:
            LOG.warning("%s: the collector answers again, it gets %s", self.address, self.signal)
        elif not ok and not self.away:
            LOG.warning(
                "%s: the collector does not answer; everything goes on without it, it is tried again", self.address
            )
        self.away = not ok


def _nothing(_: logging.LogRecord) -> bool:
    return False
