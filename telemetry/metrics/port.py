"""A process' metrics on a port of its own, which Prometheus finds by a file (``file_sd``)."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
)
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, start_http_server

from telemetry.metrics.meters import Meters
from telemetry.otlp import TIMEOUT_S, Collector

HOST = "127.0.0.1"
"""Metrics are read from this machine; a collector carries them elsewhere."""
TRIES = 100
"""Ports after the wanted one that are tried."""
EXPORT_EVERY_MS = 5000
"""Between two exports to a collector."""


class MetricsPort:
    """Serves a process' instruments over HTTP.

    Args:
        port: the wanted port; the next free one if it is taken, 0 for any.
        job: what the process is, such as ``trainer``.
        targets: directory of ``file_sd`` files; None writes none.
        otlp: address of a collector that gets the same figures; None for none.
    """

    def __init__(self, port: int, job: str, targets: Path | None = None, otlp: str | None = None) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        shown = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=registry)
        readers: list[MetricReader] = [shown]
        if otlp:
            readers.append(PeriodicExportingMetricReader(_Exporter(otlp), EXPORT_EVERY_MS, 1000 * TIMEOUT_S))
        self.meters = Meters(readers)
        self._server, self._thread = _serve(port, registry)
        self.port: int = self._server.server_port
        """Where it really listens."""
        self.target = _announce(targets, job, self.port) if targets else None

    @property
    def address(self) -> str:
        """What to scrape."""
        return f"http://{HOST}:{self.port}/metrics"

    def close(self) -> None:
        """Stop serving, and take the process off the list of targets."""
        if self.target is not None:
            self.target.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.meters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Exporter(OTLPMetricExporter):
    """Exports to a collector that may be away."""

    def __init__(self, otlp: str) -> None:
        self._collector = Collector(otlp, "metrics")
        super().__init__(self._collector.url, timeout=TIMEOUT_S)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 1000 * TIMEOUT_S, **kwargs: Any
    ) -> MetricExportResult:
        """Export once; a failure is tried again with the next figures."""
        result: MetricExportResult = super().export(metrics_data, timeout_millis, **kwargs)  # pyright: ignore[reportUnknownMemberType]
        self._collector.told(ok=result is MetricExportResult.SUCCESS)
        return result


def _serve(port: int, registry: CollectorRegistry) -> tuple[Any, Any]:
    for tried in range(port, port + TRIES) if port else (0,):
        try:
            return start_http_server(tried, HOST, registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"no free port among {port} to {port + TRIES - 1}")


def _announce(targets: Path, job: str, port: int) -> Path:
    targets.mkdir(parents=True, exist_ok=True)
    reap(targets)
    file = targets / f"{job}-{os.getpid()}.json"
    part = file.with_suffix(".part")
    part.write_text(json.dumps([{"targets": [f"{HOST}:{port}"], "labels": {"job": job}}]))
    part.rename(file)
    return file


def reap(targets: Path) -> list[str]:
    """Remove the files of processes that are no more, and return their names."""
    gone: list[str] = []
    for file in targets.glob("*-*.json"):
        pid = file.stem.rpartition("-")[2]
        if pid.isdigit() and not _alive(int(pid)):
            with suppress(FileNotFoundError):
                file.unlink()
                gone.append(file.name)
    return gone


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
