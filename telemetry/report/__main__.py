"""``python -m telemetry.report RUN_DIR [RUN_DIR …] [--out FILE]``: write a run's report anew, or compare runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from telemetry.durable import RecordLost
from telemetry.report.reading import Account, account_of
from telemetry.report.writing import REPORT_FILE, comparison_page, run_page, written

DONE, FAULT, REFUSED = 0, 1, 2
"""Exit codes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and return the exit code.

    What is missing in a run directory is said and left out. A directory that is no run's is refused; the page is
    written of the others all the same.
    """
    asked = _parser().parse_args(arguments)
    dirs: list[Path] = list(dict.fromkeys(asked.run_dirs))
    accounts, refused = _accounts(dirs)
    if not accounts:
        return REFUSED
    single = len(dirs) == 1
    default = dirs[0] / REPORT_FILE if single else Path("comparison.html")
    try:
        page = run_page(accounts[0]) if single else comparison_page(accounts)
        path = written(asked.out or default, page)
    except RecordLost as error:
        sys.stderr.write(f"{error}\n")
        return FAULT
    for account in accounts:
        for gap in account.gaps:
            sys.stderr.write(f"{account.run.path}: {gap}\n")
    sys.stdout.write(f"{path}\n")
    return REFUSED if refused else DONE


def _accounts(dirs: Sequence[Path]) -> tuple[list[Account], int]:
    """What the directories tell, and how many of them are no run's."""
    found: list[Account] = []
    for path in dirs:
        try:
            found.append(account_of(path))
        except RecordLost as error:
            sys.stderr.write(f"{error}\n")
    return found, len(dirs) - len(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m telemetry.report",
        description="Write a run's report anew, or compare several runs: one page that opens without a network.",
    )
    parser.add_argument("run_dirs", nargs="+", type=Path, metavar="RUN_DIR")
    where = f"where the page goes (RUN_DIR/{REPORT_FILE}; comparison.html for several runs)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=where)
    return parser


if __name__ == "__main__":
    sys.exit(main())
