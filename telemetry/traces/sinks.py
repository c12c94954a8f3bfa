"""Where traces go: a file of OTLP JSON lines, or a collector."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from telemetry.durable import LineFile
from telemetry.otlp import TIMEOUT_S, Collector

OTLP = "otlp:"
"""Before a collector's address."""
IDS = ("traceId", "spanId", "parentSpanId")
"""Fields that OTLP's JSON writes in hexadecimal digits, where protobuf's writes base64."""


class Sink(Protocol):
    """Takes traces."""

    name: str
    """Tells it from others, for whoever notes how far it got."""

    def take(self, spans: Sequence[ReadableSpan]) -> bool:
        """Have the spans kept; False: not now, and they are to be brought again."""
        ...

    def close(self) -> None:
        """No more come."""
        ...


def open_sink(where: str) -> Sink:
    """``otlp:http://HOST:4318`` or a path. Raises RecordLost for a file that cannot be written."""
    return CollectorSink(where.removeprefix(OTLP)) if where.startswith(OTLP) else FileSink(Path(where))


class FileSink:
    """A file of OTLP JSON lines: one request a line, as OpenTelemetry's file exporter writes and collectors read.

    https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
    """

    def __init__(self, path: Path) -> None:
        self.name = f"file:{path.resolve()}"
        self._file = LineFile(path)

    def take(self, spans: Sequence[ReadableSpan]) -> bool:
        """Write a line. Raises RecordLost: the disk is full, for one."""
        if spans:
            self._file.append(json.dumps(otlp_json(spans), ensure_ascii=False, separators=(",", ":")))
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class CollectorSink:
    """A collector over OTLP/HTTP; while it is away, everything is kept where it came from."""

    def __init__(self, address: str) -> None:
        self._collector = Collector(address, "traces")
        self.name = f"{OTLP}{self._collector.address}"
        self._exporter = OTLPSpanExporter(self._collector.url, timeout=TIMEOUT_S)

    def take(self, spans: Sequence[ReadableSpan]) -> bool:
        """Send them; whether the collector took them."""
        ok = self._exporter.export(spans) is SpanExportResult.SUCCESS
        self._collector.told(ok=ok)
        return ok

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


def otlp_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """An export request as OTLP's JSON encoding has it."""
    message: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    return cast("dict[str, Any]", _hexadecimal(message))


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, list):
        return [_hexadecimal(v) for v in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {k: base64.b64decode(v).hex() if k in IDS else _hexadecimal(v) for k, v in fields.items()}
