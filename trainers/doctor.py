"""``python -m trainers.doctor FILE``: is everything there that an experiment or serving file declares?

Exit code 0: all is there. 2: the file itself is refused. 3: something declared is missing, unreachable or too old, does
not let us in, or its clock is off.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assembly.doctor import Checkup, as_json, declared_by, examined, failures, told, waited_for
from assembly.document import read_document
from assembly.problems import Refused

DONE, REFUSED, UNAVAILABLE = 0, 2, 3
"""Exit codes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        checkups = _checkups(asked.file, asked.overrides, asked.out)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    findings = waited_for(checkups, asked.wait, lambda text: print(text, file=sys.stderr, flush=True))
    print(as_json(findings) if asked.json else told(findings))
    return UNAVAILABLE if failures(findings) else DONE


def all_there(file: Path, overrides: Sequence[str], out: Path) -> bool:
    """The first step of a command: print what is not well, and say whether it may go on. Raises Refused."""
    findings = examined(_checkups(file, overrides, out))
    if not_well := told(findings, all_of_them=False):
        print(not_well, file=sys.stderr)
    return not failures(findings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainers.doctor", description="Look whether the services that a file declares are there."
    )
    parser.add_argument("file", type=Path, metavar="EXPERIMENT.yaml|SERVE.yaml")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--wait", type=float, default=0.0, metavar="S", help="wait for services that come up late (s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where run directories go (runs)")
    return parser


def _checkups(file: Path, overrides: Sequence[str], out: Path) -> list[Checkup]:
    """Raises Refused."""
    document = read_document(file, overrides)
    if "teams" in document.data:
        # Trainers know no servers: a serving file is looked at by theirs.
        settings: Any = importlib.import_module("serving.loading").load(file, overrides)
        return importlib.import_module("serving.doctor").declared_by(settings, document)
    from assembly.loading import draft

    work = draft(file, overrides)
    return declared_by(work.accepted(), work.document, out)


if __name__ == "__main__":
    sys.exit(main())
