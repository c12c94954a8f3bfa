"""What the author of a new team runs: ``check_team(team)``, or ``python -m envs.check TEAM``."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from envs.checks.cases import scenarios, visible_truth
from envs.checks.findings import Fail, Finding, Report, calling, first_of, place_of
from envs.checks.form import schemas, well_formed
from envs.checks.hidden import planted_truth, swapped_truth
from envs.checks.missing import missing
from envs.checks.plays import abuse, baselines, masks, plays
from envs.checks.repeat import portable, repeats
from envs.checks.subject import Subject
from envs.checks.zoo import pettingzoo
from envs.scenarios import Generated, Listed, Source, read_scenarios
from runtime.errors import RepertoryError, TeamError
from runtime.types import Team

__all__ = ["Finding", "Report", "check_team"]

EPISODES = 20
"""Scenarios that each check plays: enough for rare branches of a small team, a second or two in all."""
REFUSED, WRONG = 2, 4
"""Exit codes: the team could not be had at all; a check failed."""

Check = Callable[[Subject], Iterable[Finding]]

CHECKS: dict[str, tuple[str, Check]] = {
    "scenarios": ("reproducible, distinct, plain JSON", scenarios),
    "play": ("every turn has a legal call, answers obey their schemas, episodes end", plays),
    "baselines": ("baselines make legal calls", baselines),
    "masks": ("masked calls are answered with an error", masks),
    "abuse": ("malformed, unknown, ill-typed and over-budget calls are answered and counted", abuse),
    "repeat": ("same scenario and calls, same records; sessions share nothing", repeats),
    "portable": ("observations and records travel between processes", portable),
    "pettingzoo": ("PettingZoo's own tests pass", pettingzoo),
    "hidden": ("no first observation changes with the hidden truth", swapped_truth),
    "hidden texts": ("no first observation quotes the hidden truth", planted_truth),
    "hidden fields": ("no visible field holds the hidden truth", visible_truth),
}
"""Every check that plays, with what it promises."""


def check_team(team: Team, source: Source | None = None, *, episodes: int = EPISODES) -> Report:
    """Look a team over: form, schemas, what is still missing, scenarios, play, repeatability, hidden truth.

    Args:
        team: what to look at.
        source: its scenarios; by default the team's own generator.
        episodes: how many scenarios each check plays.
    """
    findings = [*_all("form", "names, order, budgets and calls are well formed", lambda: well_formed(team))]
    findings += _all("schemas", "valid JSON Schemas (Draft 2020-12) with documentation", lambda: schemas(team))
    findings += _missing(team)
    if any(not f.ok and f.check == "form" for f in findings):
        return Report(team.name, (*findings, Finding("play", ok=False, message="not played: correct its form first")))
    if source is None and team.generate is None:
        remedy = "give it `generate`, or check it with scenarios from a file"
        return Report(team.name, (*findings, Finding("scenarios", ok=False, message="has none to play", remedy=remedy)))
    chosen = source if source is not None else Generated(team, "train", seed=1)
    for name, (promise, check) in CHECKS.items():
        subject = Subject(team, chosen, episodes)
        findings += _all(name, promise, lambda check=check, subject=subject: check(subject))
    return Report(team.name, tuple(findings))


def _all(name: str, promise: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """A check's findings, or one that says what holds; an exception of the user's code is a finding too."""
    found = list(first_of(_guarded(name, check)))
    return found or [Finding(name, ok=True, message=promise)]


def _missing(team: Team) -> list[Finding]:
    """All that is still to be done, each thing of each role."""
    nothing = Finding("missing", ok=True, message="briefs, tools, reward terms and something to compare with are there")
    return [*_guarded("missing", lambda: missing(team))] or [nothing]


def _guarded(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Fail as error:
        remedy = "the team's own code raised: correct it there"
        yield Finding(name, ok=False, message=f"{error.doing}: {error.cause}", where=error.where, remedy=remedy)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - values of the user's may raise wherever they are touched
        message = f"could not be finished: {type(error).__name__}: {error}"
        yield Finding(name, ok=False, message=message, where=place_of(error), remedy="correct what raised there")


# -- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the team that the command line names, and print the report."""
    options = _options(arguments)
    try:
        team = load_team(options.team, json.loads(options.args))
        source = Listed(read_scenarios(options.scenarios), seed=0) if options.scenarios else None
    except (RepertoryError, ValueError, OSError) as error:
        sys.stderr.write(f"{options.team}: {error}\n")
        return REFUSED
    report = check_team(team, source, episodes=options.episodes)
    sys.stdout.write(f"{report}\n")
    return 0 if report.ok else WRONG


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m envs.check", description="Check a team before anything is built on it."
    )
    parser.add_argument(
        "team", help="package.module:attribute, a team or a function that makes one; a module alone: its `team`"
    )
    parser.add_argument("--args", default="{}", metavar="JSON", help="arguments for the function, as a JSON object")
    parser.add_argument(
        "--scenarios", type=Path, metavar="FILE", help="JSONL scenarios in place of the team's generator"
    )
    parser.add_argument("--episodes", type=_positive, default=EPISODES, help=f"scenarios to play ({EPISODES})")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def load_team(name: str, args: dict[str, Any]) -> Team:
    """The team of that name: ``package.module:attribute``, or a module alone, whose ``team`` is meant.

    A folder ``NAME`` with a ``NAME.py`` in it, as ``trainers.new`` writes it, is found from outside, too.

    Raises:
        TeamError: nothing of that name, or what is there is no team and makes none.
        Fail: the team's own code raised.
    """
    module_name, _, attribute = name.partition(":")
    attribute = attribute or "team"
    for folder in (Path.cwd() / module_name, Path.cwd()):
        if str(folder) not in sys.path and (folder == Path.cwd() or (folder / f"{module_name}.py").is_file()):
            sys.path.insert(0, str(folder))
    module = calling(f"importing {module_name}", lambda: importlib.import_module(module_name))
    found: Any = getattr(module, attribute, None)
    if found is None:
        known = ", ".join(n for n, v in vars(module).items() if isinstance(v, Team)) or "no team of another name"
        raise TeamError(f"module {module_name} has no {attribute!r}, and {known}: name it as module:attribute")
    team: Any = found if isinstance(found, Team) else calling(f"calling {attribute}", lambda: found(**args))
    if not isinstance(team, Team):
        raise TeamError(f"{attribute} is or makes a {type(team).__name__}, not a Team")
    return team


if __name__ == "__main__":
    sys.exit(main())
