"""PettingZoo's own tests, on the team as an environment."""

import contextlib
import importlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from envs.checks.findings import Fail, Finding, calling
from envs.checks.subject import Subject
from envs.team_env import ParallelTeamEnv, TeamEnv

CYCLES = 60
"""Rounds of all agents that each test plays: some episodes of any team."""
KNOWN = (
    r"Observation is not a NumPy array",
    r"Observation space for each agent probably should be gymnasium\.spaces\.box or gymnasium\.spaces\.discrete",
    r"We recommend agents to be named in the format",
    r"Agents have different observation space sizes",
    r"Agents have different action space sizes",
    r"Action mask is a single number",
)
"""What PettingZoo warns of and is meant: text observations, named roles, different calls for each, or only one."""
_KNOWN = re.compile("|".join(KNOWN))


def pettingzoo(subject: Subject) -> Iterator[Finding]:
    """api_test (or parallel_api_test) and seed_test pass, with no warning that is not known."""
    tests: Any = importlib.import_module("pettingzoo.test")  # 0.2 s that only this check needs
    team, source = subject.given, subject.source
    if team.turns.kind == "simultaneous":
        yield from _run("parallel_api_test", lambda: tests.parallel_api_test(ParallelTeamEnv(team, source), CYCLES))
        yield from _run(
            "parallel_seed_test", lambda: tests.parallel_seed_test(lambda: ParallelTeamEnv(team, source), CYCLES)
        )
    else:
        yield from _run("api_test", lambda: tests.api_test(TeamEnv(team, source), CYCLES))
        yield from _run("seed_test", lambda: tests.seed_test(lambda: TeamEnv(team, source), CYCLES))


def _run(name: str, test: Callable[[], object]) -> Iterator[Finding]:
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            calling(f"running {name}", test)
        except Fail as error:
            yield Finding(
                "pettingzoo", ok=False, message=f"{name}: {error.cause}", where=error.where, remedy="see there"
            )
    for text in dict.fromkeys(str(w.message) for w in caught):
        if not _KNOWN.match(text):
            yield Finding("pettingzoo", ok=False, message=f"{name} warns: {text}", remedy="see its documentation")
