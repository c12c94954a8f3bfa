"""``python -m serving.versions WHAT TEAM [VERSION] [PERCENT]``: look at a team's versions, and steer them.

It writes into the store (and Redis) that the serving file names; a server that runs sees it within a second.
"""

import argparse
import getpass
import sys
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.problems import Refused
from runtime.exits import DONE, FAULT, REFUSED, ended
from serving.errors import ServingError
from serving.loading import USUAL, load

if TYPE_CHECKING:
    from serving.versions import Versions

LOOK_S = 0.3
"""Pause between two looks whether a version is ready (s)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    asked = parser.parse_args(argv)
    if problem := _incomplete(asked):
        parser.error(problem)
    warnings.simplefilter("ignore", DeprecationWarning)
    return ended(lambda: _command(asked), Refused, ServingError)


def _command(asked: argparse.Namespace) -> int:
    with _versions(asked.file) as versions:
        return COMMANDS[asked.what](versions, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m serving.versions", description="Steer the versions of a team.")
    parser.add_argument("what", choices=list(COMMANDS), help="what to do")
    parser.add_argument("team", metavar="TEAM")
    parser.add_argument(
        "version", nargs="?", default="", metavar="VERSION", help="v1, v2, … or a hash; for deploy also an export"
    )
    parser.add_argument("percent", nargs="?", metavar="PERCENT", help="for canary: 5%% or 0.05")
    parser.add_argument("--file", type=Path, default=USUAL, metavar="SERVE.yaml", help=f"({USUAL})")
    parser.add_argument("--why", default="", metavar="TEXT", help="for the history")
    parser.add_argument("--by", default="", metavar="NAME", help="for the history (you)")
    parser.add_argument(
        "--pinned", choices=("finish", "migrate", "end"), default="finish", help="at a rollback: open sessions"
    )
    parser.add_argument("--parent", default="", metavar="VERSION", help="at deploy: what an export was trained from")
    parser.add_argument(
        "--regressions", type=Path, metavar="CASES.jsonl", help="at promote: cases that must not get worse"
    )
    parser.add_argument("--wait", type=float, default=0.0, metavar="S", help="at deploy: wait until it is ready (s)")
    return parser


def _incomplete(asked: argparse.Namespace) -> str:
    if asked.what in ("deploy", "canary", "promote", "drain", "retire") and not asked.version:
        return f"{asked.what} wants a VERSION"
    if asked.what == "canary" and asked.percent is None:
        return "canary wants a PERCENT, such as 5%"
    if asked.what != "canary" and asked.percent is not None:
        return f"{asked.what} takes no PERCENT"
    if asked.what != "promote" and asked.regressions is not None:
        return f"--regressions has no effect at {asked.what}: it is asked for at promote"
    return ""


@contextmanager
def _versions(file: Path) -> Generator["Versions"]:
    settings = load(file)
    from runtime.actor.spec import reference
    from serving.server.start import versions_of
    from serving.tables import open_serving_store

    store = open_serving_store(reference(settings.store_at))
    try:
        yield versions_of(settings, store)
    finally:
        store.close()


def _list(versions: "Versions", asked: argparse.Namespace) -> int:
    known, sessions = versions.known(asked.team), versions.open_sessions(asked.team)
    current = versions.seated(asked.team)
    for each in known:
        share = "current" if each.alias == current else f"{each.ratio:.2%}" if each.ratio else ""
        said = f"{each.alias:6} {each.state:10} {share:8} {sessions.get(each.alias, 0):6} sessions  {each.hash}"
        print(f"{said}  {each.reason}".rstrip())
    return DONE


def _history(versions: "Versions", asked: argparse.Namespace) -> int:
    for c in versions.history(asked.team):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(c.at))
        what = " ".join(f"{k}={v}" for k, v in c.what.items() if v not in ("", None))
        print(f"{when}Z  {c.version:6} {c.action:14} by {c.by:10} {what}  {c.why}".rstrip())
    return DONE


def _deploy(versions: "Versions", asked: argparse.Namespace) -> int:
    name, whose = asked.version, _whose(asked)
    if Path(name).is_dir():
        name = versions.register(asked.team, Path(name), parent=asked.parent, **whose)
    known = versions.deploy(asked.team, name, **whose)
    deadline = time.monotonic() + asked.wait
    while known.state == "deploying" and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        known = versions.version(asked.team, known.alias)
    print(f"{asked.team} {known.alias}: {known.state}{f': {known.reason}' if known.reason else ''}  {known.hash}")
    return FAULT if known.state == "failed" else DONE


def _canary(versions: "Versions", asked: argparse.Namespace) -> int:
    from runtime.access import share_of

    if (ratio := share_of(asked.percent)) is None:
        print(f"{asked.percent!r} is no share of new sessions: write 5% or 0.05", file=sys.stderr)
        return REFUSED
    versions.canary(asked.team, asked.version, ratio, **_whose(asked))
    return _list(versions, asked)


def _promote(versions: "Versions", asked: argparse.Namespace) -> int:
    if asked.regressions is None:
        versions.promote(asked.team, asked.version, **_whose(asked))
        return _list(versions, asked)
    from serving.regressions.demanding import Demanding

    settings = load(asked.file)
    versions.version(asked.team, asked.version)
    careful = Demanding(versions, asked.regressions, settings.place / "fetched", settings.teams[asked.team].greedy)
    careful.promote(asked.team, asked.version, **_whose(asked))
    return _list(versions, asked)


def _rollback(versions: "Versions", asked: argparse.Namespace) -> int:
    bad = asked.version or versions.current(asked.team)
    versions.rollback(asked.team, bad, pinned=asked.pinned, **_whose(asked))
    return _list(versions, asked)


def _drain(versions: "Versions", asked: argparse.Namespace) -> int:
    versions.drain(asked.team, asked.version, **_whose(asked))
    return _list(versions, asked)


def _retire(versions: "Versions", asked: argparse.Namespace) -> int:
    versions.retire(asked.team, asked.version, **_whose(asked))
    return _list(versions, asked)


def _whose(asked: argparse.Namespace) -> dict[str, str]:
    return {"by": asked.by or getpass.getuser(), "why": asked.why}


COMMANDS: dict[str, Callable[["Versions", argparse.Namespace], int]] = {
    "list": _list,
    "deploy": _deploy,
    "canary": _canary,
    "promote": _promote,
    "rollback": _rollback,
    "drain": _drain,
    "retire": _retire,
    "history": _history,
}

if __name__ == "__main__":
    sys.exit(main())
