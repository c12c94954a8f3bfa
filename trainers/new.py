"""``python -m trainers.new TEAM [--to DIR]``: a small team of your own that trains at once, with its tests.

What is written is ``trainers/template`` under the name that is given: one folder, whole or not at all.
"""

import argparse
import importlib.util
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DONE, REFUSED = 0, 2
"""Exit codes."""
TEMPLATE = Path(__file__).with_name("template")
"""A team that works as it stands, under the name that is replaced."""
PLACEHOLDER = "my_team"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
"""A name of a Python module that may also name streams, tables and folders."""
OURS = ("assembly", "bench", "conftest", "docs", "envs", "policies", "rewards", "runtime", "serving", "telemetry",
        "tests", "trainers")  # fmt: skip
"""Names that the project uses itself, whether or not they can be imported from here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    target: Path = asked.to / asked.team
    if problem := _objection(asked.team) or _in_the_way(target):
        print(problem, file=sys.stderr)
        return REFUSED
    try:
        write(asked.team, target)
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror or error}", file=sys.stderr)
        return REFUSED
    print(_told(asked.team, target))
    return DONE


def write(team: str, target: Path) -> None:
    """Write the template under a team's name, as one folder that appears when it is complete.

    Args:
        team: a name that nothing speaks against.
        target: the folder, which is not there yet.

    Raises:
        OSError: it cannot be written, or has come into being meanwhile; nothing is left of it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{team}-", dir=target.parent))
    try:
        for file in sorted(TEMPLATE.iterdir()):
            if file.is_file():
                text = file.read_text(encoding="utf-8").replace(PLACEHOLDER, team)
                (part / file.name.replace(PLACEHOLDER, team)).write_text(text, encoding="utf-8")
        part.chmod(0o755)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _objection(team: str) -> str:
    """What speaks against a name; empty: nothing."""
    if not NAME.fullmatch(team):
        return f"{team!r} is no name of a team: ASCII letters, digits and _, a letter first, 48 at most"
    if keyword.iskeyword(team) or keyword.issoftkeyword(team):
        return f"{team!r} is a word of Python's own: no module can have it as its name"
    if team in OURS:
        return f"{team!r} is a package of this project: give the team another name"
    if team in sys.stdlib_module_names:
        return f"{team!r} is a module of Python's standard library: a team of that name would stand in its place"
    if (found := importlib.util.find_spec(team)) is not None and found.origin is not None:
        return f"{team!r} can be imported already, from {found.origin}: give the team another name"
    return ""


def _in_the_way(target: Path) -> str:
    """What is where the folder would be; empty: nothing."""
    if target.exists() or target.is_symlink():
        return f"{target} is there already: nothing is written over; choose another name, or another --to DIR"
    above = next(p for p in target.absolute().parents if p.exists())
    return "" if above.is_dir() else f"{above} is a file: --to wants a folder"


def _told(team: str, target: Path) -> str:
    names = "\n".join(f"  {p.name}" for p in sorted(target.iterdir()))
    steps = (f"cd {target}", f"python -m envs.check {team}", "python -m pytest", f"python -m trainers.run {team}.yaml")
    return f"{target}:\n{names}\nnext:\n" + "\n".join(f"  {step}" for step in steps)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainers.new",
        description="Write a small team that trains at once, to be changed into your own.",
    )
    parser.add_argument("team", metavar="TEAM", help="its name: a Python identifier")
    parser.add_argument("--to", type=Path, default=Path(), metavar="DIR", help="the folder it is put into (this one)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
