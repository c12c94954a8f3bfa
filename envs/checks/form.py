"""Is the team well formed? What can be told without playing it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from envs.candidates import candidates
from envs.checks.findings import Finding
from runtime.errors import RepertoryError
from runtime.tools import Contract
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN, Pipeline, Role, Team, Tool

RANDOM = "random"
"""The baseline that needs nothing: uniform over legal calls."""
_NAME = re.compile(r"\w[\w .-]{0,63}")
"""Names of teams and roles: they become names of files, of streams of the bus and of metrics."""
_RESERVED = {HAND_OVER, HAND_BACK, PASS_TURN}


def well_formed(team: Team) -> Iterator[Finding]:
    """Names, order, budgets, the way out, candidates, and reward terms."""
    yield from _names(team)
    yield from _order(team)
    yield from _limits(team)
    yield from _terms(team)
    if not any(_names(team)) and not any(_order(team)):
        for role in team.roles:
            yield from _calls(team, role)


def _wrong(message: str, where: str = "", remedy: str = "", check: str = "form") -> Finding:
    return Finding(check, ok=False, message=message, where=where, remedy=remedy)


def _twice(names: Iterable[str]) -> list[str]:
    return [n for n, count in Counter(names).items() if count > 1]


def _names(team: Team) -> Iterator[Finding]:
    if not team.roles:
        yield _wrong("has no roles", remedy="give it at least one Role")
    for name in _twice(r.name for r in team.roles):
        yield _wrong("two roles have this name", f"role {name}", "rename one")
    for key, tool in team.tools.items():
        if key != tool.name:
            yield _wrong(f"is filed under {key!r} but named {tool.name!r}", f"tool {key}", "use the tool's name as key")
        if tool.name in _RESERVED:
            yield _wrong("has the name of a hand-over call", f"tool {key}", f"not {', '.join(sorted(_RESERVED))}")
    for name, where in [(team.name, "team"), *((r.name, f"role {r.name!r}") for r in team.roles)]:
        if name and not _NAME.fullmatch(name):
            remedy = "letters, digits, spaces, _, . and -, beginning with a letter or digit, 64 at most"
            yield _wrong(f"{name!r} cannot name files and streams", where, remedy)
    for role in team.roles:
        yield from _role_names(team, role)


def _role_names(team: Team, role: Role) -> Iterator[Finding]:
    where = f"role {role.name}"
    if not role.name:
        yield _wrong("a role has no name", remedy="name it")
    for name in (n for n in role.tools if n not in team.tools):
        yield _wrong(f"its tool {name!r} is not among the team's", where, f"one of {', '.join(team.tools)}")
    for name in _twice(role.tools):
        yield _wrong(f"lists tool {name!r} twice", where, "list it once")


def _order(team: Team) -> Iterator[Finding]:
    names, order = {r.name for r in team.roles}, team.turns.order
    for name in sorted(set(order) - names):
        yield _wrong(f"{name!r} is no role", "turns.order", f"the roles are {', '.join(sorted(names))}")
    for name in sorted(names - set(order)):
        yield _wrong("never gets a turn", f"role {name}", "add it to turns.order, or drop the role")
    for name in _twice(order):
        yield _wrong(f"{name!r} stands there twice", "turns.order", "each role once")


def _limits(team: Team) -> Iterator[Finding]:
    for role in team.roles:
        for kind in ("calls", "tokens", "usd"):
            limit = getattr(role.budget, kind)
            if limit is not None and limit <= 0:
                yield _wrong(f"its budget of {limit} {kind} allows nothing", f"role {role.name}", "positive, or None")
    for tool in team.tools.values():
        if not tool.cost_usd >= 0:
            yield _wrong(f"costs {tool.cost_usd} USD", f"tool {tool.name}", "zero or more")
    if team.max_turns < 1:
        yield _wrong(f"max_turns is {team.max_turns}", remedy="at least 1")
    yield from _turns(team)


def _turns(team: Team) -> Iterator[Finding]:
    turns = team.turns
    if isinstance(turns, Pipeline):
        if turns.handoff == "verdict" and not turns.verdicts:
            yield _wrong("hands over a verdict, but names none", "turns.verdicts", "list the suspicions")
        if turns.handoff == "notes" and turns.verdicts:
            yield _wrong("names verdicts, but hands over notes", "turns.verdicts", 'handoff="verdict", or no verdicts')
        for name in _twice(turns.verdicts):
            yield _wrong(f"{name!r} stands there twice", "turns.verdicts", "each suspicion once")
    elif turns.rounds < 1:
        yield _wrong(f"{turns.rounds} rounds", "turns.rounds", "at least 1")
    elif turns.rounds * len(turns.order) > team.max_turns:
        message = f"{turns.rounds} rounds of {len(turns.order)} turns are more than max_turns {team.max_turns}"
        yield _wrong(f"{message}: every episode is cut", "turns.rounds", "raise max_turns")


def _terms(team: Team) -> Iterator[Finding]:
    for key, term in team.terms.items():
        if "outcome" in term.reads and not term.at_end:
            yield _wrong("reads the outcome before there is one", f"term {key}", "at_end=True")
    names = {r.name for r in team.roles}
    for key, baseline in team.baselines.items():
        if baseline.policies is not None and set(baseline.policies) != names:
            odd = ", ".join(sorted(names ^ set(baseline.policies)))
            yield _wrong(f"its policies and the roles differ in {odd}", f"baseline {key}", "one policy for each role")
        if baseline.policies is None and baseline.exact is None and key != RANDOM:
            yield _wrong("has neither policies nor an exact return", f"baseline {key}", "give it one")


def _calls(team: Team, role: Role) -> Iterator[Finding]:
    where = f"role {role.name}"
    for call in role.calls or ():
        if call.tool not in role.tools:
            yield _wrong(
                f"lists a call of {call.tool!r}, which is none of its tools", where, "add the tool to the role"
            )
            return
        problem = Contract(team.tools[call.tool].input_schema).problem(dict(call.args))
        if problem:
            yield _wrong(
                f"lists a call of {call.tool} that its schema refuses: {problem[0]}", where, "correct the call"
            )
    try:
        calls = candidates(team, role)
    except RepertoryError as error:
        yield _wrong(str(error), where, "list the calls, or make every argument an enumeration")
        return
    if not calls:
        yield _wrong("has nothing to call", where, "give it a tool")
    for text in _twice(str(c) for c in calls):
        yield _wrong(f"can choose the same call twice: {text}", where, "list each call once")
    last = isinstance(team.turns, Pipeline) and role.name == team.turns.order[-1]
    if last and not any(c.tool in team.tools and team.tools[c.tool].ends for c in calls):
        yield _wrong("stands last, but no call of its ends the episode", where, "tool(..., ends=True)")


def schemas(team: Team) -> Iterator[Finding]:
    """Every tool's contracts are valid, closed, and told to the agent."""
    for tool in team.tools.values():
        where = f"tool {tool.name}"
        if not tool.description.strip():
            yield _wrong("says nothing of what it does", where, "write a docstring: agents read it", "schemas")
        for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            problem = _schema_problem(schema)
            if problem:
                yield _wrong(
                    f"its {side} schema is no JSON Schema (Draft 2020-12): {problem}", where, "correct it", "schemas"
                )
        yield from _closed(tool, where)


def _schema_problem(schema: Mapping[str, Any]) -> str:
    dialect = str(schema.get("$schema", "2020-12"))
    if "2020-12" not in dialect:
        return f"it says {dialect}"
    try:
        jsonschema_rs.Draft202012Validator(dict(schema))
    except (ValueError, TypeError) as error:
        return str(getattr(error, "message", error))
    return ""


def _closed(tool: Tool, where: str) -> Iterator[Finding]:
    if tool.input_schema.get("type") != "object" or tool.input_schema.get("additionalProperties") is not False:
        message = "its input schema lets arguments through that the function does not know"
        remedy = 'an object schema with "additionalProperties": false'
        yield _wrong(message, where, remedy, "schemas")
