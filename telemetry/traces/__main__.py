"""``python -m telemetry.traces export --store URL --to FILE|otlp:URL``: traces of what a team did, from its records."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing

from runtime.errors import RepertoryError, ServiceUnavailable
from runtime.moments import unix_time

DONE, FAULT, UNAVAILABLE = 0, 1, 3
"""Exit codes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        spans = _export(asked.store, asked.to, asked.since)
    except (ServiceUnavailable, ConnectionError) as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except RepertoryError as error:
        print(error, file=sys.stderr)
        return FAULT
    print(f"{spans} spans to {asked.to}")
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m telemetry.traces", description="Traces from a store's records.")
    export = parser.add_subparsers(required=True, metavar="COMMAND").add_parser("export", help="write or send them")
    export.add_argument("--store", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…")
    export.add_argument(
        "--to", required=True, metavar="WHERE", help="a file (OTLP JSON lines), or otlp:http://HOST:4318"
    )
    export.add_argument(
        "--since",
        type=_moment,
        default=0.0,
        metavar="WHEN",
        help="only sessions opened since: 2026-05-01T12:00 (UTC, unless it says a zone), or Unix time",
    )
    return parser


def _moment(text: str) -> float:
    """Unix time (s), from itself or from ISO 8601 (without a zone, UTC)."""
    try:
        return float(text)
    except ValueError:
        return unix_time(text)


def _export(url: str, to: str, since: float) -> int:
    from telemetry.stored import stored
    from telemetry.traces.exporting import export_all
    from telemetry.traces.sinks import open_sink

    with stored(url) as store, closing(open_sink(to)) as sink:
        return sum(export_all(store, sink, since))


if __name__ == "__main__":
    sys.exit(main())
