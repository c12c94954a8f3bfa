"""What a team that is still being written lacks: nothing that is wrong, but without it training has no sense yet."""

from collections.abc import Iterator

from envs.candidates import candidates
from envs.checks.findings import Finding
from envs.checks.form import RANDOM
from runtime.errors import RepertoryError
from runtime.types import Role, Team

UNWRITTEN = ("todo", "fixme", "xxx")
"""What stands in a text that nobody has written yet."""
LIBRARY = "solved, tool_cost, invalid_calls and hand_overs fit any team"
"""The reward terms that an experiment file can name without the team's help."""


def missing(team: Team) -> Iterator[Finding]:
    """Texts that nobody has written, tools that nobody has, roles with nothing to decide, pay, and comparison."""
    for role in team.roles:
        yield from _role(team, role)
    for name, tool in team.tools.items():
        if _unwritten(tool.description):
            yield _todo("its description is still to be written: agents read it", f"tool {name}", "in its docstring")
        if not any(name in role.tools for role in team.roles):
            yield _todo("no role has it", f"tool {name}", f'Role(…, tools=("{name}", …)), or drop the tool')
    yield from _pay(team)
    if all(name == RANDOM for name in team.baselines):
        remedy = "Baseline(policies={ROLE: function of an Observation and a Random, …}), in Team(baselines=…)"
        yield _todo("no rule to compare with: a score says how far what was learnt is from the best rule", "", remedy)


def _role(team: Team, role: Role) -> Iterator[Finding]:
    where = f"role {role.name}"
    if not role.brief.strip() or _unwritten(role.brief):
        yield _todo("its brief is still to be written: language models read it", where, 'Role(…, brief="…")')
    if not role.tools:
        yield _todo("has no tools", where, "name some of the team's: Role(…, tools=(…))")
    elif _no_choice(team, role):
        yield _todo("has one call only, so there is nothing to decide", where, "give it another tool, or drop the role")


def _no_choice(team: Team, role: Role) -> bool:
    """Whether a role has nothing but one call; where its calls cannot be listed, the check of its form says so."""
    try:
        return len(candidates(team, role)) == 1
    except (RepertoryError, KeyError, ValueError):
        return False


def _pay(team: Team) -> Iterator[Finding]:
    if not team.terms:
        remedy = f"write one with runtime.terms.term and put it into Team(terms=…); {LIBRARY}"
        yield _todo("no reward terms of its own", "", remedy)
    elif not any(term.kind == "outcome" for term in team.terms.values()):
        remedy = '@term(kind="outcome", reads=["outcome"], at_end=True)'
        yield _todo("no reward term of kind outcome: nothing says what the team is for", "terms", remedy)


def _unwritten(text: str) -> bool:
    return any(word.strip(".,:;!()[]") in UNWRITTEN for word in text.lower().split())


def _todo(message: str, where: str, remedy: str) -> Finding:
    return Finding("missing", ok=True, message=message, where=where, remedy=remedy, todo=True)
