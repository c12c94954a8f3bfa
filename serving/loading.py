"""Read a serving file: accepted whole, or refused with everything that is wrong with it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from assembly.document import Document, read_document
from assembly.problems import Problem, Refused, did_you_mean, in_order
from assembly.refusals import findings, under
from runtime.access import LOOPBACK
from runtime.errors import TeamError
from runtime.records import Json
from serving.settings import GENERATED, Http, Serving

USUAL = Path("serving.yaml")
"""The file that commands read where none is named."""
BEGINS = "a serving file begins with teams: …"


def load(file: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> Serving:
    """The serving file, with ``dotted.key=value`` overrides. Paths in it are from its own folder.

    Raises:
        assembly.problems.Refused: what is wrong with it, all of it.
    """
    document = read_document(file, overrides, environment, BEGINS)
    data = _with_paths(document.data, file.resolve().parent)
    problems, settings = [*document.problems], None
    wrong: set[tuple[str | int, ...]] = set()
    try:
        settings = Serving.model_validate(data)
    except ValidationError as error:
        found = findings(error, Serving)
        wrong = {f.path for f in found}
        problems += [document.problem(f.path, f.message) for f in found]
    if not under(("http",), wrong):
        problems += _about_access(document, Http.model_validate(data.get("http") or {}))
    if settings is not None and settings.rollout is not None and settings.rollout.regressions is not None:
        problems += _about_regressions(document, Path(settings.rollout.regressions))
    if problems or settings is None:
        raise Refused(document.name, in_order(problems))
    return settings


def _about_access(document: Document, http: Http) -> Iterator[Problem]:
    """Rules between keys of the http section."""
    if http.host not in LOOPBACK and not http.tokens:
        text = f"{http.host!r} can be reached from other machines: name tokens (http.tokens), or listen at 127.0.0.1"
        yield document.problem(("http", "host"), text)
    known = list(http.tokens) or [GENERATED]
    for place, name in enumerate(http.admins):
        if name not in known:
            text = f"{name!r} has no token{did_you_mean(name, known)} ({', '.join(known)})"
            yield document.problem(("http", "admins", place), text)


def _about_regressions(document: Document, file: Path) -> Iterator[Problem]:
    """Whether the cases that a promotion is asked about can be read."""
    from assembly.cases import read_cases

    try:
        read_cases(file)
    except (TeamError, UnicodeError) as error:
        yield document.problem(("rollout", "regressions"), str(error))
    except OSError as error:
        yield document.problem(("rollout", "regressions"), f"cannot be read: {error.strerror} ({file})")


def _with_paths(data: Mapping[str, Json], folder: Path) -> dict[str, Json]:
    """The file's values, with relative paths made absolute."""
    resolved: dict[str, Json] = {**data, "directory": _from(folder, data.get("directory", "served"))}
    rollout = data.get("rollout")
    if isinstance(rollout, dict) and "regressions" in rollout:
        plan = cast("dict[str, Any]", rollout)
        resolved["rollout"] = {**plan, "regressions": _from(folder, plan["regressions"])}
    teams = data.get("teams")
    if isinstance(teams, dict):
        resolved["teams"] = {
            name: {**cast("dict[str, Any]", team), "registry": _from(folder, cast("dict[str, Any]", team)["registry"])}
            if isinstance(team, dict) and "registry" in team
            else team
            for name, team in cast("dict[str, Json]", teams).items()
        }
    return resolved


def _from(folder: Path, value: Json) -> Json:
    if not isinstance(value, str) or "://" in value or not value:
        return value
    return os.path.normpath(folder / Path(value).expanduser())
