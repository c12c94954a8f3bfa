"""Read an experiment file: accepted whole, or refused with everything that is wrong with it."""

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

import yaml
from pydantic import ValidationError

from assembly.document import Document, read_document
from assembly.experiment import Experiment
from assembly.problems import Path, Problem, Refused, in_order, undotted
from assembly.refusals import Finding, findings, under
from assembly.rules import Broken
from assembly.yaml_text import MERGE, typed
from runtime.records import Json

ROUNDS = 8
"""Validations of one file: each leaves out what the one before refused, to see the rules behind it."""
STAND_INS: dict[str, Json] = {
    "name": "unnamed",
    "team": {"use": "none:none"},
    "policies": {"unnamed": {"kind": "encoder"}},
}
"""What stands in for a refused key that has no default, while the rest is looked at."""


@dataclass
class Draft:
    """A file that has been looked at, whether it can be accepted or not."""

    document: Document
    experiment: Experiment | None = None
    """What the file says where nothing is wrong; defaults and stand-ins elsewhere."""
    problems: list[Problem] = field(default_factory=list[Problem])
    wrong: set[Path] = field(default_factory=set[Path])
    """The places that are wrong by themselves: rules that look at them are silent."""

    def add(self, broken: Broken) -> None:
        """Take note of a rule that does not hold, unless a key that it looked at is wrong anyway."""
        if all(map(self.stands, (broken.key, *broken.involves))):
            self.problems.append(self.document.problem(undotted(broken.key), broken.message))

    def stands(self, key: str) -> bool:
        """Whether nothing is wrong with a key, nor with anything in it."""
        return not under(undotted(key), self.wrong)

    def accepted(self) -> Experiment:
        """The experiment. Raises Refused with all problems if there are any."""
        if self.problems or self.experiment is None:
            raise Refused(self.document.name, in_order(self.problems))
        return self.experiment


def load(path: FilePath | str, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment in a file, with ``dotted.key=value`` overrides. Raises Refused."""
    return draft(FilePath(path), overrides).accepted()


def draft(file: FilePath, overrides: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> Draft:
    """Look at a file. Raises Refused only if it cannot be read as YAML at all."""
    document = read_document(file, overrides, environment)
    work = Draft(document, problems=[*document.problems], wrong={undotted(p.key) for p in document.problems if p.key})
    data = copy.deepcopy(document.data)
    for _ in range(ROUNDS):
        broken: list[Broken] = []
        try:
            work.experiment = Experiment.model_validate(data, context=broken)
        except ValidationError as error:
            _leave_out(work, data, findings(error))
            continue
        for each in broken:
            work.add(each)
        break
    return work


def _leave_out(work: Draft, data: dict[str, Json], found: list[Finding]) -> None:
    work.problems += [work.document.problem(f.path, f.message) for f in found if not under(f.path, work.wrong)]
    for path in sorted((f.path for f in found), key=_last_first, reverse=True):
        work.wrong.add(_drop(data, path))
    work.wrong.update(f.meant for f in found if f.meant)


def _last_first(path: Path) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def _drop(data: dict[str, Json], path: Path) -> Path:
    """Take a value out, so that its default stands in for it; the place that is thereby not what was written."""
    if len(path) <= 1:
        key = str(path[0]) if path else ""
        data.pop(key, None)
        if key in STAND_INS:
            data[key] = copy.deepcopy(STAND_INS[key])
        return path
    around: Json = data
    for part in path[:-1]:
        try:
            around = around[part]
        except (LookupError, TypeError):
            return path
    if isinstance(around, dict) and path[-1] in around:
        del around[path[-1]]
        return path
    return _drop(data, path[:-1])


def resolved(experiment: Experiment) -> str:
    """The experiment as YAML with every key written out; it loads again to an equal one."""
    return yaml.dump(
        _escaped(experiment.model_dump(mode="json")), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120
    )


def _escaped(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _escaped(inner) for key, inner in cast("dict[str, Json]", value).items()}
    if isinstance(value, list):
        return [_escaped(inner) for inner in cast("list[Json]", value)]
    return value.replace("${", "$${") if isinstance(value, str) else value


class _Dumper(yaml.SafeDumper):
    """Quotes whatever YAML 1.2 would read as something else."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out."""
        return True

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """The tag that a value would be read with if it were written plainly."""
        if kind is not yaml.ScalarNode or not implicit[0]:
            return super().resolve(kind, value, implicit)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if value == MERGE:
            return "tag:yaml.org,2002:merge"
        try:
            return f"tag:yaml.org,2002:{_TAGS[type(typed(value))]}"
        except ValueError:
            return "tag:yaml.org,2002:float"


_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


def _text(dumper: Any, value: str) -> yaml.ScalarNode:
    """Text with line breaks of any kind is escaped, since a break may be folded or changed into another."""
    style = '"' if len(value.splitlines()) > 1 or value != value.strip() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
