"""``python -m runtime.bus list|replay|stats|log``: what an operator asks a team's bus."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from runtime.bus.bus import EventBus
from runtime.bus.errors import BusError
from runtime.bus.names import LOG, TEAMS
from runtime.embedded.client import connect
from runtime.errors import ServiceUnavailable, TeamError

UNREACHABLE = 3
"""Exit code where Redis or the store cannot be reached."""
REFUSED = 1
"""Exit code where what was asked for cannot be done."""
PAGE = 1_000
"""Entries of the log read at once."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        if asked.what == "log":
            return _log(asked)
        return _team(asked)
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return UNREACHABLE
    except (BusError, TeamError) as error:
        print(error, file=sys.stderr)
        return REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m runtime.bus", description="Look into a team's event bus.")
    what = parser.add_subparsers(dest="what", required=True)
    for name, help_ in (
        ("list", "dead letters: which, from whom to whom, why"),
        ("replay", "give a dead letter's group the event once more"),
        ("stats", "depth, pending, lag, redeliveries, dead letters, sizes, as JSON"),
    ):
        command = what.add_parser(name, help=help_)
        command.add_argument("team", metavar="TEAM")
        _where(command)
        command.add_argument("--store", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…")
        if name == "replay":
            command.add_argument("event", metavar="EVENT", help="an event id, or `all`")
            command.add_argument("--group", default="", help="only this group's")
    log = what.add_parser("log", help="the whole chain of a session, from the complete log")
    log.add_argument("correlation", metavar="CORRELATION_ID")
    _where(log)
    return parser


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--redis", required=True, metavar="WHERE", help="embedded:DIRECTORY or redis://HOST:PORT/0")


def _team(asked: Any) -> int:
    with connect(asked.redis) as client:
        roles = client.hget(TEAMS, asked.team)
    if not roles:
        print(f"no team {asked.team!r} has been at this Redis", file=sys.stderr)
        return REFUSED
    bus = EventBus(asked.redis, asked.store, team=asked.team, roles=roles.decode().split(","))
    try:
        return {"list": _list, "replay": _replay, "stats": _stats}[asked.what](bus, asked)
    finally:
        bus.stop()


def _list(bus: EventBus, asked: Any) -> int:
    letters = bus.dead_letters()
    for x in letters:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(x.at))
        pair = f"{x.fields.get('from', '?')} -> {x.fields.get('to', '?')}"
        print(f"{x.event_id}  {when}  {pair}  group {x.group}, {x.attempts} tries: {x.reason}")
    print(f"{len(letters)} dead letters" if letters else "no dead letters", file=sys.stderr)
    return 0


def _replay(bus: EventBus, asked: Any) -> int:
    wanted = {x.event_id for x in bus.dead_letters()} if asked.event == "all" else {asked.event}
    for event_id in sorted(wanted):
        print(f"{event_id}: given to {bus.replay(event_id, asked.group)} groups")
    return 0


def _stats(bus: EventBus, asked: Any) -> int:
    print(json.dumps(bus.stats(), indent=2))
    return 0


def _log(asked: Any) -> int:
    """Print a session's events, one a line."""
    found, after = 0, "-"
    with connect(asked.redis) as client:
        while entries := client.xrange(LOG, after, "+", count=PAGE):
            for entry, fields in entries:
                text = {k.decode(): v.decode(errors="replace") for k, v in fields.items()}
                if text.get("correlation_id") == asked.correlation:
                    found += 1
                    print(entry.decode(), f"{text.get('from')} -> {text.get('to')}", text.get("payload"))
            after = f"({entries[-1][0].decode()}"
    print(f"{found} events of {asked.correlation}", file=sys.stderr)
    return 0 if found else REFUSED


if __name__ == "__main__":
    sys.exit(main())
