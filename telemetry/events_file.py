"""TensorBoard's event file, written by TensorBoard's own parts: neither torch nor TensorFlow is needed.

They come without types and are loaded when a file is opened, so that ``--help`` does not wait for them.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import count
from os import getpid
from pathlib import Path
from typing import Any, BinaryIO

from runtime import seams

Charts = Mapping[str, Mapping[str, Sequence[str]]]
"""Category to chart to the tags' regular expressions: lines that are drawn together."""
OpenFile = Callable[[Path], BinaryIO]
_NUMBERS = count()


class EventsFile:
    """Appends values at steps to a new event file of a directory."""

    def __init__(self, directory: Path, open_file: OpenFile | None = None) -> None:
        self._events: Any = import_module("tensorboard.compat.proto.event_pb2")
        self._summaries: Any = import_module("tensorboard.compat.proto.summary_pb2")
        records: Any = import_module("tensorboard.summary.writer.record_writer")
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{seams.now():010.0f}.run.{getpid()}.{next(_NUMBERS):06d}"
        self._file: Any = records.RecordWriter((open_file or _open_new)(directory / name))
        self._write(file_version="brain.Event:2")

    def restart(self, step: int) -> None:
        """Hide what earlier files of the directory hold at that step and later: the run went on from before it."""
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._write(step=step, session_log=start)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """One point on each curve."""
        simple = [self._summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._write(step=step, summary=self._summaries.Summary(value=simple))

    def histogram(self, tag: str, values: Sequence[float], step: int) -> None:
        """How often each value occurred."""
        self._write(step=step, summary=_plugin("histogram.summary_v2").histogram_pb(tag, values))

    def text(self, tag: str, markdown: str, step: int) -> None:
        """A text, as Markdown."""
        self._write(step=step, summary=_plugin("text.summary_v2").text_pb(tag, markdown))

    def hparams(self, values: Mapping[str, float | str | bool], metrics: Sequence[str]) -> None:
        """The run's settings, for the table that sets runs side by side by those tags."""
        plugin = _plugin("hparams.summary_v2")
        names = [plugin.HParam(name) for name in values]
        self._write(
            step=0, summary=plugin.hparams_config_pb(hparams=names, metrics=[plugin.Metric(m) for m in metrics])
        )
        self._write(step=0, summary=plugin.hparams_pb(dict(values), start_time_secs=seams.now()))

    def layout(self, charts: Charts) -> None:
        """Which curves to draw together."""
        layouts, metadata = _plugin("custom_scalar.layout_pb2"), _plugin("custom_scalar.metadata")
        categories = [
            layouts.Category(title=title, chart=[_multiline(layouts, *chart) for chart in inside.items()])
            for title, inside in charts.items()
        ]
        encoded: Any = layouts.Layout(category=categories).SerializeToString()
        tensors: Any = import_module("tensorboard.util.tensor_util")
        value = self._summaries.Summary.Value(
            tag=metadata.CONFIG_SUMMARY_TAG,
            metadata=metadata.create_summary_metadata(),
            tensor=tensors.make_tensor_proto(encoded),
        )
        self._write(step=0, summary=self._summaries.Summary(value=[value]))

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def _write(self, **content: object) -> None:
        self._file.write(self._events.Event(wall_time=seams.now(), **content).SerializeToString())


def _plugin(name: str) -> Any:
    return import_module(f"tensorboard.plugins.{name}")


def _multiline(layouts: Any, title: str, tags: Sequence[str]) -> Any:
    return layouts.Chart(title=title, multiline=layouts.MultilineChartContent(tag=list(tags)))


def _open_new(path: Path) -> BinaryIO:
    return path.open("xb")
