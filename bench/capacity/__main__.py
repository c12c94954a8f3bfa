"""``python -m bench.capacity``: measure a small case, foretell it, and plan a million sessions a day with its costs."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bench import quiet
from bench.outcome import machine
from bench.results import rounded
from bench.runs import ROOT

KEPT = ROOT / "docs" / "capacity.json"
PAGE = ROOT / "docs" / "scaling.md"
PARTS = ("live", "served")
BEGINS, ENDS = "<!-- written by python -m bench.capacity --write -->\n", "<!-- up to here -->\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    if asked.write and asked.quick:
        print("--write keeps what was measured, and --quick measures nothing", file=sys.stderr)
        return 2
    quiet()
    from bench.capacity.page import fragment

    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    figures = {**kept, **measured(asked.parts or PARTS, quick=asked.quick)}
    print(fragment(figures))
    if asked.write:
        KEPT.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), fragment(figures)), encoding="utf-8")
    return 0


def measured(parts: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """What each part gave, as JSON, with when and where."""
    from bench.capacity import live, served
    from bench.capacity.figures import live_figures, served_figures
    from bench.capacity.planning import MINUTES

    cores, minutes = os.cpu_count() or 1, 0.2 if quick else MINUTES
    found: dict[str, Any] = {}
    for part in parts:
        about = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
        if part == "live":
            found[part] = about | live_figures(live.measure(quick=quick), cores, minutes)
        else:
            found[part] = about | served_figures(served.measure(quick=quick), cores, minutes)
    return rounded(found)


def written(page: str, fragment: str) -> str:
    """The page with the fragment in its place."""
    return re.sub(
        f"(?<={re.escape(BEGINS)}).*(?={re.escape(ENDS)})", lambda _: f"\n{fragment}\n", page, flags=re.DOTALL
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__.partition(": ")[2])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure (both)")
    parser.add_argument("--quick", action="store_true", help="a handful of sessions: shows that it works")
    parser.add_argument("--write", action="store_true", help="keep the figures in docs/, and write them into the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
