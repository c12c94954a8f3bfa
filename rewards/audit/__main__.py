"""``python -m rewards.audit EXPERIMENT.yaml``: is its reward honest? Exit 5 on an error that nobody waived."""

import argparse
import csv
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.problems import Refused
from runtime.exits import DONE, FAULT, REFUSED, UNAVAILABLE, ended
from runtime.llm.replies import switch

if TYPE_CHECKING:
    from assembly.sections import Audit
    from rewards.audit.material import Material

AUDIT = 5
"""The exit code where the audit finds an error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    asked = parser.parse_args(argv)
    switch(on=not asked.no_cache)
    try:
        return ended(lambda: _audited(asked), Refused)
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the command's last word, not that of the user's code
        return _fault(error)


def _fault(error: BaseException) -> int:
    from assembly.blame import told, whose

    theirs = whose(error)
    ours = f"{told(error)}\nthis is a fault of ours: the last lines above say where"
    print(f"the team's own code raised: {theirs}" if theirs else ours, file=sys.stderr)
    return FAULT


def _unwritable(file: Path) -> str:
    """Why a file cannot be written; empty if it can be, as far as can be told without writing."""
    if file.is_dir():
        return "is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    return "" if os.access(file if file.exists() else file.parent, os.W_OK) else "may not be written"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rewards.audit", description="Look for leaks, and for pay that a good team would not earn."
    )
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT.yaml")
    parser.add_argument("--json", action="store_true", help="the report as JSON on standard output")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page too")
    parser.add_argument("--only", nargs="+", metavar="CHECK", help="these checks only")
    parser.add_argument("--no-cache", action="store_true", help="ask models again what they were asked before")
    labels = parser.add_mutually_exclusive_group()
    labels.add_argument("--sheet", type=Path, metavar="CSV", help="write 100 decisions for people to label, and stop")
    labels.add_argument("--labels", type=Path, metavar="CSV", help="compare the labels of a sheet with the pay")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override a key"
    )
    return parser


def _audited(asked: argparse.Namespace) -> int:
    from assembly.build import Build
    from assembly.stage import material_of
    from assembly.team_check import Known, accept
    from rewards.audit.auditing import UnknownCheck
    from rewards.audit.sheet import SheetError, matched, read_labels
    from rewards.terms import TERMS

    for option, file in (("--sheet", asked.sheet), ("--html", asked.html)):
        if file is not None and (why := _unwritable(file)):
            print(f"{option} {file}: {why}", file=sys.stderr)
            return REFUSED
    folder = asked.experiment.resolve().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        labels = read_labels(asked.labels) if asked.labels else None
    except (ValueError, csv.Error) as error:
        print(f"{asked.labels}: {error}" if isinstance(error, csv.Error) else error, file=sys.stderr)
        return REFUSED
    build = Build(accept(asked.experiment, asked.overrides, Known(TERMS)).experiment, folder)
    material = material_of(build)
    try:
        if asked.sheet:
            return _sheet(material, asked.sheet)
        if labels is not None:
            matched(material, labels)
            material.own = {**material.own, "labels": labels}
        return _report(material, build.experiment.rewards.audit, asked)
    except (UnknownCheck, SheetError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:
        if error.filename is None or Path(error.filename) not in (asked.sheet, asked.html):
            raise
        print(f"{error.filename} cannot be written: {error.strerror}", file=sys.stderr)
        return REFUSED


def _sheet(material: "Material", file: Path) -> int:
    from rewards.audit.sheet import write_sheet

    many = write_sheet(material, file)
    print(
        f"{file}: {many} decisions. Label each in the last column, higher is better (or yes/no), then: --labels {file}"
    )
    return DONE


def _report(material: "Material", settings: "Audit", asked: argparse.Namespace) -> int:
    from rewards.audit.auditing import audit
    from rewards.audit.page import write_page
    from rewards.audit.printed import print_report

    waive = {w.check: w.reason for w in settings.waive}
    report = audit(material, asked.only, waive, settings.checks)
    if asked.html:
        write_page(report, asked.html)
    if asked.json:
        print(json.dumps(report.state(), indent=1, default=str))
    else:
        print_report(report)
    return DONE if report.ok else AUDIT


if __name__ == "__main__":
    sys.exit(main())
