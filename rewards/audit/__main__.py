"""``python -m rewards.audit EXPERIMENT.yaml``: is its reward honest? Exit 5 on an error that nobody waived."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from assembly.problems import Refused
from runtime.errors import RepertoryError

OK, FAULT, REFUSED, UNAVAILABLE, AUDIT = 0, 1, 2, 3, 5
"""Exit codes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    asked = parser.parse_args(argv)
    try:
        return _audited(asked)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except RepertoryError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return FAULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rewards.audit", description="Look for leaks, and for pay that a good team would not earn."
    )
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT.yaml")
    parser.add_argument("--json", action="store_true", help="the report as JSON on standard output")
    parser.add_argument("--only", nargs="+", metavar="CHECK", help="these checks only")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override a key"
    )
    return parser


def _audited(asked: argparse.Namespace) -> int:
    from assembly.build import Build
    from assembly.stage import material_of
    from assembly.team_check import Known, accept
    from rewards.audit.auditing import audit
    from rewards.terms import TERMS

    folder = asked.experiment.resolve().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    build = Build(accept(asked.experiment, asked.overrides, Known(TERMS)).experiment, folder)
    settings = build.experiment.rewards.audit
    waive = {w.check: w.reason for w in settings.waive}
    try:
        report = audit(material_of(build), asked.only, waive, getattr(settings, "checks", ()))
    except ValueError as error:
        print(error, file=sys.stderr)
        return REFUSED
    if asked.json:
        print(json.dumps(report.state(), indent=1, default=str))
    else:
        from rewards.audit.printed import print_report

        print_report(report)
    return OK if report.ok else AUDIT


if __name__ == "__main__":
    sys.exit(main())
