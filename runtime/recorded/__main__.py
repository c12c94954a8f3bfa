"""``python -m runtime.recorded TEAM --store URL --to FILE.parquet``: what a team did live, as a Parquet file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from runtime.errors import RepertoryError
from runtime.moments import unix_time
from runtime.recorded.parquet import write_sessions
from runtime.recorded.sessions import recorded_sessions
from runtime.store import open_store


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 3 where the store cannot be read."""
    asked = _parser().parse_args(argv)
    try:
        store = open_store(asked.store)
        try:
            found = recorded_sessions(store, asked.team, asked.since, asked.until)
            count = write_sessions(asked.to, found)
        finally:
            store.close()
    except RepertoryError as error:
        print(error, file=sys.stderr)
        return 3
    print(f"{count} sessions of {asked.team} in {asked.to}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m runtime.recorded", description="Write a team's recorded sessions into a Parquet file."
    )
    parser.add_argument("team", help="whose sessions")
    parser.add_argument("--store", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…")
    parser.add_argument("--to", required=True, type=Path, metavar="FILE.parquet")
    parser.add_argument("--since", type=unix_time, default=float("-inf"), metavar="TIME", help="e.g. 2026-05-01")
    parser.add_argument("--until", type=unix_time, default=float("inf"), metavar="TIME")
    return parser


if __name__ == "__main__":
    sys.exit(main())
