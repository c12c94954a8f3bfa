"""``python -m serving.replay SESSION --version v2``: what another version would have done in recorded sessions."""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.problems import Refused
from runtime.exits import DONE, REFUSED, ended
from runtime.moments import unix_time
from serving.errors import ServingError
from serving.loading import USUAL

if TYPE_CHECKING:
    from runtime.recorded import RecordedSession
    from serving.replay.reading import House
    from serving.replay.replaying import Replay


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    asked = parser.parse_args(argv)
    if problem := _incomplete(asked):
        parser.error(problem)
    warnings.simplefilter("ignore", DeprecationWarning)
    return ended(lambda: _command(asked), Refused, ServingError)


def _command(asked: argparse.Namespace) -> int:
    from serving.replay.reading import house

    with house(asked.file, asked.store, asked.team) as at:
        return _replay(at, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m serving.replay", description="Run recorded sessions again under another version."
    )
    parser.add_argument("session", nargs="?", metavar="SESSION", help="one session, shown decision by decision")
    parser.add_argument("--version", required=True, metavar="VERSION", help="v2, a hash, or the directory of an export")
    parser.add_argument("--sessions", type=Path, metavar="FILE", help="ids, one a line, or a file of runtime.recorded")
    parser.add_argument("--since", type=unix_time, metavar="TIME", help="sessions that ended from then on (ISO 8601)")
    parser.add_argument("--last", type=int, metavar="N", help="the last N sessions that ended")
    parser.add_argument(
        "--team", default="", metavar="TEAM", help="whose (found by the session, or the file's only one)"
    )
    parser.add_argument("--file", type=Path, metavar="SERVE.yaml", help=f"where store and registry are named ({USUAL})")
    parser.add_argument("--store", default="", metavar="URL", help="the store, where it is not the serving file's")
    parser.add_argument("--sample", action="store_true", help="draw decisions, as a version that is not greedy does")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def _incomplete(asked: argparse.Namespace) -> str:
    many = [n for n in ("sessions", "since", "last") if getattr(asked, n) is not None]
    if asked.session and many:
        return f"give one SESSION, or many by --{many[0]}"
    if not asked.session and not many:
        return "give a SESSION, or --sessions FILE, --since TIME or --last N"
    if asked.sessions and len(many) > 1:
        return "--sessions names the sessions: --since and --last have no effect beside it"
    return "" if asked.last is None or asked.last > 0 else "--last wants 1 or more"


def _replay(at: "House", asked: argparse.Namespace) -> int:
    from serving.replay.replaying import NotReplayed, replayed
    from serving.replay.words import as_data, lines_of, table_of

    team = at.team_of(asked.session) if asked.session else at.team
    name, version = at.version(team, asked.version)
    greedy = at.greedy(team) and not asked.sample
    replays: list[Replay] = []
    skipped: list[str] = []
    for recorded in _sessions(at, team, asked, skipped):
        try:
            replays.append(replayed(version, recorded, greedy=greedy))
        except NotReplayed as error:
            skipped.append(str(error))
    if asked.session and not replays:
        print(skipped[0], file=sys.stderr)
        return REFUSED
    if asked.json:
        found = [as_data(r) for r in replays]
        print(json.dumps(found[0] if asked.session else {"sessions": found, "left_out": skipped}, ensure_ascii=False))
        return DONE
    told = lines_of(replays[0], name) if asked.session else table_of(replays, skipped, name)
    for line in told:
        print(line)
    return DONE


def _sessions(at: "House", team: str, asked: argparse.Namespace, skipped: list[str]) -> "Iterator[RecordedSession]":
    if asked.session:
        yield at.session(team, asked.session)
    elif asked.sessions:
        yield from at.listed(team, asked.sessions, skipped)
    else:
        yield from at.ended(team, asked.since, asked.last)


if __name__ == "__main__":
    sys.exit(main())
