"""The second look at a file, at what it names: does the team import, has it these roles, terms and scenarios?"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from assembly.experiment import Experiment, Policy
from assembly.fit import fitting
from assembly.loading import Draft, draft
from assembly.problems import unknown
from assembly.rules import Broken
from assembly.scenario_check import scenario_problems
from assembly.user_code import NotUsableError, as_callable, attribute, made, misfits, missing_module, takes
from envs.candidates import candidates
from runtime.errors import TeamError
from runtime.types import RewardTerm, Team


@dataclass(frozen=True, slots=True)
class Known:
    """What the library offers to any team, by the names that a file uses."""

    terms: Mapping[str, RewardTerm]
    baselines: Collection[str] = ()
    """Scripted policies that fit any team."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An experiment with which nothing is wrong, and what it refers to."""

    experiment: Experiment
    team: Team | None
    """None for a PettingZoo environment, which is made where it is played."""
    seats: Mapping[str, str]
    """The policy of each role; empty for a PettingZoo environment, whose agents are known when it is made."""


def accept(file: Path | str, overrides: Sequence[str], known: Known) -> Accepted:
    """The experiment in a file and its team. Raises Refused with every problem of either."""
    work = draft(Path(file), overrides)
    team = check_team(work, known)
    experiment = work.accepted()
    return Accepted(experiment, team, seats(experiment.policies, team) if team else {})


def check_team(work: Draft, known: Known) -> Team | None:
    """Import the team and add to the draft what does not fit it; the team, if there is one."""
    x = work.experiment
    if x is None:
        return None
    folder = work.document.file.resolve().parent
    for broken in _own_checks(x, folder):
        work.add(broken)
    if not work.stands("team") or bool(x.team.use) == bool(x.team.pettingzoo):
        return None
    if x.team.pettingzoo:
        why = missing_module(x.team.pettingzoo)
        if why:
            work.add(Broken("team.pettingzoo", why))
        return None
    team = _team(work, x, folder)
    if team is not None:
        who = (*_roles(x, team), *_one_network(x, team), *_baselines(x, team, known, folder))
        problems = (*who, *_imitated(x, team, folder), *_terms(x, team, known, folder))
        for broken in problems:
            work.add(broken)
        for broken in scenario_problems(x, team, folder):
            work.add(broken)
    return team


def policy_roles(name: str, policy: Policy, team: Team) -> list[str]:
    """The roles of a team that a policy decides for."""
    if policy.roles is None:
        return [role.name for role in team.roles if (role.policy or role.name) == name]
    return [r.name for r in team.roles if any(fnmatchcase(r.name, pattern) for pattern in policy.roles)]


def seats(policies: Mapping[str, Policy], team: Team) -> dict[str, str]:
    """The policy of each role."""
    return {role: name for name, policy in policies.items() for role in policy_roles(name, policy, team)}


def _team(work: Draft, x: Experiment, folder: Path) -> Team | None:
    reference = x.team.use or ""
    try:
        found = attribute(reference, folder)
        function = None if isinstance(found, Team) else as_callable(found)
        wrong = misfits(function, x.team.args) if function else [("", "a team takes no arguments")] * bool(x.team.args)
        for name, why in wrong:
            work.add(Broken(f"team.args.{name}" if name else "team.args", f"{reference}: {why}"))
        if wrong:
            return None
        team = made(partial(function, **x.team.args), (), reference) if function else found
    except NotUsableError as error:
        work.add(Broken("team.use", str(error), ("team.args",)))
        return None
    if not isinstance(team, Team):
        work.add(Broken("team.use", f"{reference} is no team, and makes none (it is of type {type(team).__name__})"))
        return None
    try:
        return fitting(team)
    except TeamError as error:
        work.add(Broken("team.use", str(error)))
        return None


def _roles(x: Experiment, team: Team) -> Iterable[Broken]:
    names = [role.name for role in team.roles]
    owner: dict[str, str] = {}
    for name, policy in x.policies.items():
        own = policy_roles(name, policy, team)
        for pattern in policy.roles or ():
            if not any(fnmatchcase(n, pattern) for n in names):
                yield Broken(f"policies.{name}.roles", f"the team has no such role: {unknown(pattern, names)}")
        if policy.roles is None and not own:
            message = f"decides for no role: {unknown(name, names)}; name it after a role, or give roles: […]"
            yield Broken(f"policies.{name}", message)
        for role in own:
            if role in owner and role not in (policy.roles or (name,)):
                message = f"role {role!r} has two policies, {owner[role]!r} and {name!r}; keep one"
                yield Broken(f"policies.{name}", message, (f"policies.{owner[role]}",))
            owner.setdefault(role, name)
    for role in names:
        if role not in owner:
            yield Broken(
                "policies", f"none decides for the role {role!r}; add {role}: {{kind: encoder}}", ("policies",)
            )


def _one_network(x: Experiment, team: Team) -> Iterable[Broken]:
    """Whether the roles of one network have as many calls, if any: it has one output for each."""
    for name, policy in x.policies.items():
        if policy.kind != "encoder":
            continue
        counts = {role: count for role in policy_roles(name, policy, team) if (count := _calls(team, role))}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{role} has {count}" for role, count in counts.items())
            message = f"one network wants roles that choose among as many calls ({told}); give each a policy of its own"
            yield Broken(f"policies.{name}.roles", message)


def _calls(team: Team, role: str) -> int | None:
    """How many calls a role chooses among; None where they cannot be listed, which is said elsewhere."""
    try:
        return len(candidates(team, team.role(role)))
    except TeamError:
        return None


def _baselines(x: Experiment, team: Team, known: Known, folder: Path) -> Iterable[Broken]:
    playable = {n: b.policies for n, b in team.baselines.items() if b.policies is not None}
    for name, policy in x.policies.items():
        if policy.kind != "scripted":
            continue
        key = f"policies.{name}.use"
        if ":" in policy.use:
            wanted = "a scripted policy is a function of an observation and a Random"
            yield from _usable(key, policy.use, folder, wanted, 2)
        elif policy.use in playable:
            lacking = [r for r in policy_roles(name, policy, team) if r not in playable[policy.use]]
            if lacking:
                yield Broken(key, f"the baseline {policy.use!r} has no policy for {', '.join(lacking)}")
        elif policy.use not in known.baselines:
            yield Broken(key, f"{unknown(policy.use, [*playable, *known.baselines])}; or give package.module:attribute")


def _imitated(x: Experiment, team: Team, folder: Path) -> Iterable[Broken]:
    """Whether there is somebody for a warm start to imitate. A store that is away is no fault of the file."""
    playable = [n for n, b in team.baselines.items() if b.policies is not None]
    for name, policy in x.policies.items():
        if policy.kind != "causal_lm" or policy.warmup is None:
            continue
        source, key = policy.warmup.source, f"policies.{name}.warmup.from"
        if not policy.warmup.recorded:
            if source not in playable:
                yield Broken(key, f"{unknown(source, playable)}; or give a store's URL, a .parquet or a .jsonl file")
        elif "://" not in source and not (folder / source).is_file():
            yield Broken(key, f"{source}: there is no such file")


def _terms(x: Experiment, team: Team, known: Known, folder: Path) -> Iterable[Broken]:
    terms = {**known.terms, **team.terms}
    for place, term in enumerate(x.rewards.terms):
        key = f"rewards.terms.{place}"
        if ":" in term.use:
            try:
                found = attribute(term.use, folder)
            except NotUsableError as error:
                yield Broken(f"{key}.use", str(error))
                continue
        elif term.use in terms:
            found = terms[term.use]
        else:
            yield Broken(f"{key}.use", f"{unknown(term.use, terms)}; or give package.module:attribute")
            continue
        yield from _term_args(key, term.args, found)


def _term_args(key: str, args: Mapping[str, object], found: object) -> Iterable[Broken]:
    function = as_callable(found)
    if isinstance(found, RewardTerm):
        if args:
            yield Broken(f"{key}.args", "the term takes no arguments; drop them")
    elif function is None:
        yield Broken(f"{key}.use", "is neither a reward term nor a function that makes one (runtime.terms.term)")
    elif wrong := misfits(function, args):
        for name, why in wrong:
            yield Broken(f"{key}.args.{name}" if name else f"{key}.args", why)
    else:
        try:
            term = made(partial(function, **args), (), "making the term")
        except NotUsableError as error:
            yield Broken(f"{key}.use", str(error))
            return
        if not isinstance(term, RewardTerm):
            yield Broken(f"{key}.use", f"makes no reward term (runtime.terms.term), but {type(term).__name__}")


def _own_checks(x: Experiment, folder: Path) -> Iterable[Broken]:
    for place, reference in enumerate(x.rewards.audit.checks):
        key, wanted = f"rewards.audit.checks.{place}", "an own check is a function of Material"
        yield from _usable(key, reference, folder, wanted, 1)


def _usable(key: str, reference: str, folder: Path, wanted: str, arguments: int) -> Iterable[Broken]:
    try:
        found = attribute(reference, folder)
        function = as_callable(found) or as_callable(getattr(found, "function", None))
        if function is None or not takes(function, arguments):
            yield Broken(key, f"{reference} cannot be called{'' if function is None else ' so'}; {wanted}")
    except NotUsableError as error:
        yield Broken(key, str(error))
