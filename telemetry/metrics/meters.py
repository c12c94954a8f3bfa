"""The instruments of a process, fed by name: an unknown name, label or unit is an error, never a new series."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.metrics import Counter, Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader

from telemetry.metrics.instruments import INSTRUMENTS, Instrument

SCOPE = "repertory"


class Meters:
    """Feeds instruments.

    Args:
        readers: where the figures go.
        known: the instruments there are, by OpenTelemetry name.
    """

    def __init__(self, readers: Sequence[MetricReader], known: Mapping[str, Instrument] = INSTRUMENTS) -> None:
        self._provider = MeterProvider(readers, shutdown_on_exit=False)
        self._known = known
        self._meter = self._provider.get_meter(SCOPE)
        self._made: dict[str, Any] = {}

    def record(self, name: str, value: float | None, **labels: str) -> None:
        """Add to a counter, set a gauge, or put a value into a histogram; None and NaN are no measurement.

        Raises:
            KeyError: there is no such instrument.
            ValueError: these are not its labels.
        """
        instrument = self._known[name]
        if set(labels) != set(instrument.labels):
            raise ValueError(f"{name} has the labels {', '.join(instrument.labels) or 'none'}, not {', '.join(labels)}")
        if value is None or not math.isfinite(value):
            return
        made = self._made.get(name) or self._make(instrument)
        if isinstance(made, Counter):
            made.add(value, labels)
        elif isinstance(made, Histogram):
            made.record(value, labels)
        else:
            made.set(value, labels)

    def _make(self, instrument: Instrument) -> Any:
        name, unit, meaning = instrument.name, instrument.unit, instrument.meaning
        if instrument.kind == "counter":
            made: Any = self._meter.create_counter(name, unit, meaning)
        elif instrument.kind == "gauge":
            made = self._meter.create_gauge(name, unit, meaning)
        else:
            made = self._meter.create_histogram(
                name, unit, meaning, explicit_bucket_boundaries_advisory=list(instrument.bounds)
            )
        return self._made.setdefault(name, made)

    def close(self) -> None:
        """Hand the last values over and stop."""
        self._provider.shutdown()
