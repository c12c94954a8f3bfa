"""``python -m bench [ROW …]``: measure, print each claim beside its target, keep the figures as JSON."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import quiet
from bench.outcome import machine
from bench.page import lines, page
from bench.results import entry, keep, read
from bench.rows import ROWS, Options

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"
"""Where figures and run directories go; no part of the repository."""
NOT_MET = 1
"""Exit code where a target is not met."""
TERMINATED = 143
"""Exit code after SIGTERM."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    if asked.list:
        for name, row in ROWS.items():
            print(f"{name:16} {row.says}{'' if row.usual else ' (only when named)'}")
        return 0
    if asked.write and not asked.rows:
        _write()
        return 0
    if asked.write and asked.quick:
        print("--write keeps what was measured, and --quick measures nothing", file=sys.stderr)
        return 2
    unknown = [r for r in asked.rows if r not in ROWS]
    if unknown:
        print(f"no row {', '.join(unknown)}: there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    quiet()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that a training command ends with this one
    met = [_measure(name, asked) for name in asked.rows or [n for n, r in ROWS.items() if r.usual]]
    if asked.write:
        _write()
    return 0 if all(met) or asked.quick else NOT_MET


def _write() -> None:
    (DOCS / "benchmarks.md").write_text(page(read(DOCS / "benchmarks.json")), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure speed and learning against targets.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to measure (all usual ones)")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that rows work, measures nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep figures here (bench/results/results.json)")
    parser.add_argument(
        "--write", action="store_true", help="keep figures in docs/benchmarks.json and write docs/benchmarks.md from it"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of learning rows")
    parser.add_argument("--minutes", type=float, metavar="M", help="training time of supply_chain and worlds (10)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    return parser


def _measure(name: str, asked: Any) -> bool:
    """Run a row, print and keep it; whether every target is met."""
    where, began = machine(), time.perf_counter()
    out = RESULTS / "runs" / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    options = Options(
        out=out, quick=asked.quick, seeds=asked.seeds, minutes=asked.minutes, overrides=tuple(asked.overrides)
    )
    outcome = ROWS[name].run(options)
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "quick": asked.quick,
        "asked": _asked(asked),
        "seconds": round(time.perf_counter() - began, 1),
        "machine": where,
    }
    told = entry(outcome, about)
    keep(asked.json or (DOCS / "benchmarks.json" if asked.write else RESULTS / "results.json"), name, told)
    print(lines(name, told["claims"]), flush=True)
    return all(c["met"] is not False for c in told["claims"])


def _asked(asked: Any) -> list[str]:
    named = [f"--{n} {v:g}" for n, v in (("seeds", asked.seeds), ("minutes", asked.minutes)) if v is not None]
    return [*named, *(f"--set {o}" for o in asked.overrides)]


if __name__ == "__main__":
    sys.exit(main())
