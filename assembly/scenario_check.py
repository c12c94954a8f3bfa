"""Can the scenarios of a file be read and played, and do its regression cases leave some to train on?"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assembly.experiment import Experiment
from assembly.rules import Broken
from assembly.sections import Scenarios
from assembly.user_code import NotUsableError, made
from envs.scenarios import read_scenarios
from runtime.errors import RepertoryError, ServiceUnavailable, TeamError
from runtime.tools import Contract
from runtime.types import Scenario, Team

MOST_SHAPES = 8
"""Of a scenario file: cases with other keys, of which the world of one is made to see whether it can be."""


def scenario_problems(x: Experiment, team: Team, folder: Path) -> list[Broken]:
    """What is wrong with where the team's scenarios come from, and with the regression cases beside them."""
    found = [*_scenarios(x, team), *_regressions(x, team)]
    if found or x.evaluation.regressions is None:
        return found
    return list(_nothing_left(x, folder))


def _scenarios(x: Experiment, team: Team) -> list[Broken]:
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


def _regressions(x: Experiment, team: Team) -> Iterable[Broken]:
    """Whether the regression cases can be read and are this team's."""
    file, key = x.evaluation.regressions, "evaluation.regressions"
    if file is None:
        return
    from assembly.cases import read_cases

    try:
        others = sorted({case.session.team for case in read_cases(Path(file))} - {team.name})
        if others:
            yield Broken(key, f"has cases of {', '.join(others)}, and the team is {team.name} ({file})")
    except TeamError as error:
        yield Broken(key, str(error))
    except OSError as error:
        yield Broken(key, f"cannot be read: {error.strerror} ({file})")
    except UnicodeError:
        yield Broken(key, f"is not UTF-8 text ({file})")


def _nothing_left(x: Experiment, folder: Path) -> Iterable[Broken]:
    """Whether the regression cases leave something to train on. A store that is away is no fault of the file."""
    from assembly.build import Build

    def training() -> None:
        with suppress(ServiceUnavailable):
            Build(x, folder).source("train")

    try:
        made(training, (), "making its training scenarios")
    except NotUsableError as error:
        yield Broken("evaluation.regressions", str(error), ("scenarios", "team"))


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
