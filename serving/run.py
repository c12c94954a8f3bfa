"""``python -m serving.run [SERVE.yaml]``: a server of trained teams, until it is interrupted.

Nothing heavy is imported before the file has been read.
"""

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.problems import Refused
from runtime.errors import ServiceUnavailable
from runtime.exits import DONE, UNAVAILABLE, ended
from serving.loading import USUAL, load

if TYPE_CHECKING:
    from serving.server.start import Server
    from serving.settings import Serving

LOOK_S = 0.5
"""Pause between two looks for news (s)."""
NEWS = ("ready", "failed", "promote", "rollback", "canary", "canary_refused", "drain", "retire")
"""Changes that are printed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    warnings.simplefilter("ignore", DeprecationWarning)
    return ended(lambda: _command(asked), Refused)


def _command(asked: argparse.Namespace) -> int:
    settings = load(asked.file, asked.overrides)
    if asked.check:
        return DONE
    return _serve(settings) if _all_there(asked, settings) else UNAVAILABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m serving.run",
        description="Serve trained teams over HTTP: each version an application of its own on Ray Serve.",
    )
    parser.add_argument("file", nargs="?", type=Path, default=USUAL, metavar="SERVE.yaml", help=f"({USUAL})")
    parser.add_argument("--check", action="store_true", help="read the file, say what is wrong with it, and stop")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    return parser


def _all_there(asked: argparse.Namespace, settings: "Serving") -> bool:
    """Look at what the file declares, and print what is not well; whether the server may start."""
    from assembly.doctor import examined, failures, told
    from assembly.document import read_document
    from serving.doctor import declared_by

    findings = examined(declared_by(settings, read_document(asked.file, asked.overrides)))
    if not_well := told(findings, all_of_them=False):
        print(not_well, file=sys.stderr)
    return not failures(findings)


def _serve(settings: "Serving") -> int:
    try:
        from serving.server.start import serving
    except ImportError as error:
        raise ServiceUnavailable("ray[serve]", f"is not installed: {error}", "pip install 'repertory[serve]'") from None
    stop = threading.Event()

    def stopped(_: int, __: object) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stopped)
    with serving(settings) as server:
        _show(server)
        _tell(server, stop)
    print("stopped: sessions and versions are kept, the same command goes on with them", flush=True)
    return DONE


def _show(server: "Server") -> None:
    settings = server.settings
    print(f"serving at {server.url} (POST /v1/teams/TEAM/sessions; the schema is at /docs)")
    print(f"metrics: {server.metrics}, every process in {settings.watched.targets}")
    for name, at in settings.tokens.items():
        print(f"token {name}: {at}")
    for team in settings.teams:
        known = server.versions.known(team)
        if not known:
            print(f"{team}: no version yet; python -m serving.versions deploy {team} RUN_DIR/version")
        for version in known:
            print(f"{team} {version.alias}: {version.state}  {version.hash}")
    sys.stdout.flush()


def _tell(server: "Server", stop: threading.Event) -> None:
    """Print what happens to versions, until told to stop."""
    last = {team: max((c.id for c in server.versions.history(team, 1)), default=0) for team in server.settings.teams}
    while not stop.wait(LOOK_S):
        for team, told in list(last.items()):
            news = [c for c in server.versions.history(team, 100) if c.id > told]
            for change in news:
                if change.action in NEWS:
                    why = f": {change.why}" if change.why else ""
                    print(f"{team} {change.version}: {change.action} by {change.by}{why}", flush=True)
            last[team] = max([told, *(c.id for c in news)])


if __name__ == "__main__":
    sys.exit(main())
