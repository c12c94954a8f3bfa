"""``python -m runtime.embedded cli DIR [COMMAND …]``: talk to a bundled server, or keep one running."""

import argparse
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from runtime.embedded import Places, connect, serve
from runtime.errors import ServiceUnavailable

UNREACHABLE = 3
"""Exit code where the server does not answer."""
REFUSED = 1
"""Exit code of a command that the server refuses."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        return _serve(asked.directory) if asked.what == "serve" else _cli(asked.directory, asked.command)
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return UNREACHABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m runtime.embedded", description="The bundled Redis of a directory.")
    what = parser.add_subparsers(dest="what", required=True)
    cli = what.add_parser("cli", help="send a command and print the answer; without one, read commands line by line")
    cli.add_argument("directory", metavar="DIR", help="the directory it was started in, such as runs/NAME/TIME/redis")
    cli.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="such as XLEN agent_events")
    what.add_parser("serve", help="keep it running until Ctrl-C").add_argument("directory", metavar="DIR")
    return parser


def _serve(directory: str) -> int:
    stop = threading.Event()

    def told_to_stop(number: int, frame: object) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, told_to_stop)
    with serve(directory) as server:
        print(f"{server.reference} is ready; {_how(server.places)}", flush=True)
        stop.wait()
    return 0


def _cli(directory: str, command: list[str]) -> int:
    client = connect(Places.of(directory).reference)
    if command:
        return _sent(client, command)
    print(_how(Places.of(directory)), file=sys.stderr)
    for line in sys.stdin:
        if words := shlex.split(line):
            _sent(client, words)
    return 0


def _how(places: Places) -> str:
    """How to connect with any client."""
    program = shutil.which("redis-cli") or shutil.which("valkey-cli") or "redis-cli"
    return f'connect: {program} -s {places.socket} -a "$(cat {places.directory / "redis.password"})"'


def _sent(client: Any, words: list[str]) -> int:
    try:
        print("\n".join(told(client.execute_command(*words))))
    except RedisError as error:
        print(f"(error) {error}")
        return REFUSED
    return 0


def told(answer: Any, indent: str = "") -> list[str]:
    """An answer as lines, lists numbered."""
    if isinstance(answer, dict):
        answer = [part for pair in answer.items() for part in pair]  # pyright: ignore
    if isinstance(answer, list | tuple | set):
        lines = [
            f"{indent}{i}) {line.strip() if j == 0 else line}" if j == 0 else line
            for i, part in enumerate(answer, 1)  # pyright: ignore
            for j, line in enumerate(told(part, indent + "   "))
        ]
        return lines or [f"{indent}(empty)"]
    if answer is None:
        return [f"{indent}(nil)"]
    if answer is True:
        return [f"{indent}OK"]
    if isinstance(answer, bytes):
        return [indent + answer.decode(errors="backslashreplace")]
    return [f"{indent}{answer}"]


if __name__ == "__main__":
    sys.exit(main())
