"""The second look at a file, at what it names: does the team import, has it these roles, terms and scenarios?"""

import json
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
from assembly.sections import Scenarios
from assembly.user_code import NotUsableError, as_callable, attribute, made, misfits, missing_module, takes
from envs.candidates import candidates
from envs.scenarios import read_scenarios
from runtime.errors import RepertoryError, ServiceUnavailable, TeamError
from runtime.tools import Contract
from runtime.types import RewardTerm, Scenario, Team

MOST_SHAPES = 8
"""Of a scenario file: cases with other keys, of which the world of one is made to see whether it can be."""


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
        for broken in (*scenario_problems(x, team), *_regressions(x, team, folder)):
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


def scenario_problems(x: Experiment, team: Team) -> list[Broken]:
    """What is wrong with where the team's scenarios come from."""
    part = x.scenarios
    files = {"scenarios.file": part.file} if part.file else {
        "scenarios.train.file": part.train.file, "scenarios.eval.file": part.eval.file,
    }  # fmt: skip
    found: dict[str, list[Scenario]] = {}
    broken: list[Broken] = []
    for key, file in files.items():
        if key == "scenarios.train.file" and part.source:
            continue
        if file is None:
            if team.generate is None:
                section = key.removesuffix(".file")
                broken.append(Broken(section, f"team {team.name} makes no scenarios of its own; give a file"))
            continue
        try:
            found[key] = read_scenarios(Path(file))
        except TeamError as error:
            broken.append(Broken(key, str(error)))
        except OSError as error:
            broken.append(Broken(key, f"cannot be read: {error.strerror} ({file})"))
        except UnicodeError:
            broken.append(Broken(key, f"is not UTF-8 text ({file})"))
    own: Iterable[Broken] = () if broken else _recorded(x, team)
    unfit = [b for key, cases in found.items() for b in _unfit(key, cases, team)]
    return [*broken, *own, *unfit, *_one_sided(part, found), *_shared(part, found)]


def _unfit(key: str, cases: Sequence[Scenario], team: Team) -> Iterable[Broken]:
    """What the team cannot play: cases that break its own types, and, of each shape, one whose world cannot be made."""
    for side, schema in team.case_types.items():
        contract = Contract(schema)
        wrong = ((s.id, contract.problem(dict(getattr(s, side)))) for s in cases if side in ("visible", "truth"))
        first = next(((name, problem) for name, problem in wrong if problem), None)
        if first is not None:
            name, (message, path) = first
            yield Broken(key, f"scenario {name}: its {side} part is not what the team declares: {message} at {path}")
            return
    shapes = {(*sorted(s.visible), None, *sorted(s.truth)): s for s in reversed(cases)}
    for scenario in sorted(shapes.values(), key=cases.index)[:MOST_SHAPES]:
        try:
            made(team.world, (scenario,), "making its world")
        except NotUsableError as error:
            yield Broken(key, f"scenario {scenario.id}: {error}")
            return


def _recorded(x: Experiment, team: Team) -> Iterable[Broken]:
    """Whether there is something to train on among recorded sessions."""
    if x.scenarios.source is None or x.scenarios.store is None:
        return
    from assembly.recorded import recorded

    try:
        recorded(x.scenarios, team)
    except ServiceUnavailable:
        return  # no fault of the file: the doctor says so
    except RepertoryError as error:
        yield Broken("scenarios.store", str(error), ("scenarios",))


def _regressions(x: Experiment, team: Team, folder: Path) -> Iterable[Broken]:
    """Whether the regression cases can be read, are this team's, and leave something to train on."""
    file, key = x.evaluation.regressions, "evaluation.regressions"
    if file is None:
        return
    from assembly.build import Build
    from assembly.cases import read_cases

    try:
        others = sorted({case.session.team for case in read_cases(Path(file))} - {team.name})
        if others:
            yield Broken(key, f"has cases of {', '.join(others)}, and the team is {team.name} ({file})")
        else:
            Build(x, folder).source("train")
    except TeamError as error:
        yield Broken(key, str(error), ("scenarios", "team"))
    except OSError as error:
        yield Broken(key, f"cannot be read: {error.strerror} ({file})")
    except UnicodeError:
        yield Broken(key, f"is not UTF-8 text ({file})")


def _one_sided(part: Scenarios, found: Mapping[str, list[Scenario]]) -> Iterable[Broken]:
    sides = {part.holds_out(s.id) for s in found.get("scenarios.file", ())}
    if len(sides) == 1:
        side = "trained on" if True in sides else "held out"
        message = f"too few scenarios to split: none would be {side}; add some, or change scenarios.eval_fraction"
        yield Broken("scenarios.file", message, ("scenarios.eval_fraction",))


def _shared(part: Scenarios, found: Mapping[str, list[Scenario]]) -> Iterable[Broken]:
    if len(found) == 2 and part.train.file != part.eval.file:
        train, test = ({json.dumps([s.visible, s.truth], sort_keys=True) for s in side} for side in found.values())
        if both := len(train & test):
            message = (
                f"{both} of its {len(test)} scenarios stand in the training file too; held out is held out: drop them"
            )
            yield Broken("scenarios.eval.file", message)
