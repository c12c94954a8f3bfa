"""``python -m serving.regressions add SESSION… --to cases.jsonl``: sessions that went badly, as regression cases.

``add`` puts them into a file, ``list`` shows it, ``try`` plays them on a version (exit code 4: some went worse).
"""

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.problems import Refused
from runtime.errors import TeamError
from runtime.exits import DONE, ended
from runtime.moments import unix_time
from serving.errors import ServingError
from serving.loading import USUAL

if TYPE_CHECKING:
    from runtime.recorded import RecordedSession
    from serving.replay.reading import House

WORSE = 4
"""The exit code where cases went worse."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    asked = parser.parse_args(argv)
    if asked.what == "add" and (problem := _incomplete(asked)):
        parser.error(problem)
    warnings.simplefilter("ignore", DeprecationWarning)
    command = {"add": _add, "list": _list, "try": _try}[asked.what]
    return ended(lambda: command(asked), Refused, ServingError, TeamError, OSError)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m serving.regressions", description="Keep sessions that went badly, and play them again."
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="add|list|try")
    add = commands.add_parser("add", help="put sessions into a file of cases")
    add.add_argument("sessions", nargs="*", metavar="SESSION", help="by id")
    add.add_argument("--worst", type=int, metavar="N", help="the N with the lowest reward: feedback, else own terms")
    add.add_argument(
        "--complaints", type=float, nargs="?", const=0.0, metavar="BELOW", help="those with feedback below that (0)"
    )
    add.add_argument("--since", type=unix_time, metavar="TIME", help="of those that ended from then on (ISO 8601)")
    add.add_argument("--to", type=Path, required=True, metavar="CASES.jsonl")
    add.add_argument("--why", default="", metavar="TEXT", help="why they are kept (what was paid or said)")
    show = commands.add_parser("list", help="show the cases of a file")
    show.add_argument("cases", type=Path, metavar="CASES.jsonl")
    trying = commands.add_parser("try", help="play the cases on a version")
    trying.add_argument("cases", type=Path, metavar="CASES.jsonl")
    trying.add_argument("--version", required=True, metavar="VERSION", help="v2, a hash, or the directory of an export")
    trying.add_argument("--json", action="store_true", help="for programs")
    for command in (add, trying):
        command.add_argument("--team", default="", metavar="TEAM", help="whose (found by the session or the cases)")
        command.add_argument("--file", type=Path, metavar="SERVE.yaml", help=f"where store and registry are ({USUAL})")
        command.add_argument("--store", default="", metavar="URL", help="the store, where it is not that file's")
    return parser


def _incomplete(asked: argparse.Namespace) -> str:
    ways = [bool(asked.sessions), asked.worst is not None, asked.complaints is not None]
    if sum(ways) != 1:
        return "give SESSIONs, or --worst N, or --complaints"
    if asked.sessions and asked.since is not None:
        return "--since has no effect beside sessions that are named"
    return "" if asked.worst is None or asked.worst > 0 else "--worst wants 1 or more"


def _add(asked: argparse.Namespace) -> int:
    from serving.regressions.collecting import added
    from serving.replay.reading import house

    with house(asked.file, asked.store, asked.team) as at:
        result = added(asked.to, _chosen(at, asked), asked.why)
    for case in result.added:
        print(f"added {case.name}: {case.why}")
    for name in result.known:
        print(f"{name} is there already")
    print(f"{len(result.added)} cases added to {asked.to}")
    return DONE


def _chosen(at: "House", asked: argparse.Namespace) -> "list[RecordedSession]":
    from serving.regressions.collecting import complaints, worst

    if asked.sessions:
        return [at.session(at.team_of(name), name) for name in dict.fromkeys(asked.sessions)]
    found = at.ended(at.team, asked.since, None)
    return worst(found, asked.worst) if asked.worst is not None else list(complaints(found, asked.complaints))


def _list(asked: argparse.Namespace) -> int:
    from assembly.cases import read_cases
    from assembly.paid import Compared

    for case in read_cases(asked.cases):
        paid = Compared(case.paid, case.paid).before
        print(f"{case.name:<34} {case.session.team}  {'unknown' if paid is None else format(paid, '+.2f')}  {case.why}")
    return DONE


def _try(asked: argparse.Namespace) -> int:
    from assembly.cases import read_cases
    from serving.regressions.trying import lines_of, tried
    from serving.replay.reading import house
    from serving.replay.words import as_data

    cases = read_cases(asked.cases)
    team = asked.team or cases[0].session.team
    with house(asked.file, asked.store, team) as at:
        name, version = at.version(team, asked.version)
        found = tried(version, cases, greedy=at.greedy(team))
    if asked.json:
        told = {
            t.case.name: {"passed": t.passed, "worse": t.worse, "replay": as_data(t.replay) if t.replay else None}
            for t in found
        }
        print(json.dumps(told, ensure_ascii=False))
    else:
        print("\n".join(lines_of(found, name)))
    return WORSE if any(t.worse for t in found) else DONE


if __name__ == "__main__":
    sys.exit(main())
