"""``python -m assembly.check FILE…``: experiment files, accepted or refused, and nothing else is done.

For hooks and editors: no service is asked, nothing of the team is imported, nothing is trained. Exit code 0: every file
is accepted; 2: one is refused, with all that is wrong with its keys and values. Whether team, terms and scenarios fit
is said by ``python -m trainers.run FILE --check``. With ``--services``, what the doctor finds is told too, and never
ends in failure: a file may be right while a service is away.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from assembly.doctor import declared_by, examined, told
from assembly.loading import Draft, draft
from assembly.problems import Refused

ACCEPTED, REFUSED = 0, 2
"""Exit codes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    return max(_looked_at(file, services=asked.services) for file in asked.files)


def _parser() -> argparse.ArgumentParser:
    about = "Accept experiment files, or say all that is wrong with their keys and values."
    parser = argparse.ArgumentParser(prog="python -m assembly.check", description=about)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--services", action="store_true", help="also tell which declared services are not there")
    return parser


def _looked_at(file: Path, *, services: bool) -> int:
    try:
        work = draft(file)
        work.accepted()
    except Refused as refused:
        print(refused, file=sys.stderr)
        return ACCEPTED if services else REFUSED
    if services:
        _tell_services(file, work)
    return ACCEPTED


def _tell_services(file: Path, work: Draft) -> None:
    findings = examined(declared_by(work.accepted(), work.document, Path("runs")))
    if not_well := told(findings, all_of_them=False):
        print(f"{file}\n{not_well}")


if __name__ == "__main__":
    sys.exit(main())
