"""Where scenarios come from: a team's generator, or a JSONL file."""

import json
import math
import random
import stat
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from runtime.errors import TeamError
from runtime.records import Json
from runtime.seams import digest
from runtime.types import Scenario, Team

FAR = 1_000_003
"""How far away in the stream another scenario is taken from, in the place of one that is not to come: so far that
training does not come upon it a second time soon."""
TRIES = 64
"""How many are looked at for one that may come: where none of them may, next to none may."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Scenario k of an endless, reproducible stream."""

    team: Team
    split: str
    """``train`` or ``eval``: part of the key, so that the two never meet."""
    seed: int
    count: int | None = None
    """Scenarios in all; None is no end."""
    barred: Container[Scenario] = ()
    """Scenarios that are not to come: in the place of each comes another of the stream."""

    def __call__(self, index: int) -> Scenario:
        """The scenario of that index. Raises TeamError if the team makes none, or none that may come."""
        for step in range(TRIES):
            scenario = self._made(index + step * FAR)
            if scenario not in self.barred:
                return scenario
        raise TeamError(
            f"team {self.team.name}: nearly all of its scenarios are among those that are not to come; give cases more "
            "that tells them apart, such as a seed"
        )

    def _made(self, index: int) -> Scenario:
        if self.team.generate is None:
            raise TeamError(f"team {self.team.name} generates no scenarios: give it a file, `scenarios: {{file: …}}`")
        return self.team.generate(self.split, self.seed, index if self.count is None else index % self.count)

    def epoch(self, index: int) -> int:
        """How often the stream has been used up before that index."""
        return 0 if self.count is None else index // self.count


@dataclass(frozen=True, slots=True)
class Listed:
    """Scenarios from a file, in an order drawn anew each time round."""

    scenarios: Sequence[Scenario]
    seed: int
    shuffle: bool = True

    def __call__(self, index: int) -> Scenario:
        """The scenario at that place of the endless stream."""
        epoch, place = divmod(index, len(self.scenarios))
        return self.scenarios[_order(self.seed, epoch, len(self.scenarios))[place] if self.shuffle else place]

    def epoch(self, index: int) -> int:
        """How often all of them have been played before that index."""
        return index // len(self.scenarios)


Source = Generated | Listed
"""``source(k)`` is a scenario; ``source.epoch(k)`` tells the k-th from its repetitions."""

_ORDERS: dict[tuple[int, int, int], list[int]] = {}
_KEPT_ORDERS = 8
"""Permutations remembered: a run needs the one of the epoch it is in."""


def _order(seed: int, epoch: int, count: int) -> list[int]:
    key = (seed, epoch, count)
    if key not in _ORDERS:
        if len(_ORDERS) >= _KEPT_ORDERS:
            _ORDERS.pop(next(iter(_ORDERS)))
        order = list(range(count))
        random.Random(digest("order", *key)).shuffle(order)
        _ORDERS[key] = order
    return _ORDERS[key]


MOST_CHARACTERS = 1_000_000
"""Of a line: no agent reads a longer case, and a file that is no JSONL file may be one line of any length."""
MOST_NESTED = 64
"""Lists and objects within each other: more than any case needs, and few enough for every library that reads it."""


def read_scenarios(path: Path) -> list[Scenario]:
    """Scenarios of a JSONL file, one object a line: ``{"id"?, "visible": {…}, "truth": {…}, "seed"?}``.

    Raises:
        TeamError: a line is not such an object, or like an earlier one, or there is none; with line numbers.
        OSError: the file cannot be read.
        UnicodeError: it is not UTF-8.
    """
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise TeamError(f"{path}: it is no file but a pipe or a device")
    problems: list[str] = []
    found: list[Scenario] = []
    ids: dict[str, int] = {}
    contents: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            try:
                scenario, content = _scenario(line, number, path.stem)
                _unlike(ids, scenario.id, number, f"has the id {scenario.id!r}, as", "give it another")
                _unlike(contents, content, number, "is the same case as", "drop one, or give each a seed")
                found.append(scenario)
            except (ValueError, KeyError, TypeError) as error:
                problems.append(f"line {number}: {error}")
    if not found and not problems:
        problems.append("it holds no scenario")
    if problems:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise TeamError(f"{path}: {'; '.join(problems[:5])}{more}")
    return found


def _unlike(seen: dict[str, int], what: str, number: int, told: str, remedy: str) -> None:
    first = seen.setdefault(what, number)
    if first != number:
        raise ValueError(f"{told} line {first}: {remedy}")


def _scenario(line: str, number: int, stem: str) -> tuple[Scenario, str]:
    """The scenario of a line, and all of it but its id, as text: the same for cases that are the same."""
    read = _read(line)
    data = cast("dict[str, Json]", read) if isinstance(read, dict) else {}
    if not isinstance(data.get("visible"), dict) or not isinstance(data.get("truth"), dict):
        raise ValueError('a scenario is {"visible": {…}, "truth": {…}} with an optional "id" and "seed"')
    unknown = sorted(set(data) - {"id", "visible", "truth", "seed"})
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}")
    name, seed = data.get("id", f"{stem}:{number}"), data.get("seed", digest(stem, number) % 2**31)
    if not isinstance(name, str) or not name:
        raise ValueError(f"id is {json.dumps(name)[:60]}; give a text")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError(f"seed is {json.dumps(seed)[:60]}; give a whole number")
    content = json.dumps([data["visible"], data["truth"], data.get("seed")], sort_keys=True)
    return Scenario(id=name, visible=data["visible"], truth=data["truth"], seed=seed), content


def _read(line: str) -> Json:
    """A line's value, if it says every key once and only what JSON can say."""
    if len(line) > MOST_CHARACTERS:
        raise ValueError(f"has {len(line):,} characters; a case has {MOST_CHARACTERS:,} at most")
    if _nested(line) > MOST_NESTED:
        raise ValueError(f"is nested more than {MOST_NESTED} deep")
    return json.loads(line, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)


def _nested(line: str) -> int:
    """How deep brackets are nested outside texts; 0 where there are too few of them to matter."""
    depth = deepest = 0
    inside = escaped = False
    for c in line if line.count("[") + line.count("{") > MOST_NESTED else "":
        if escaped:
            escaped = False
        elif c == "\\":
            escaped = inside
        elif c == '"':
            inside = not inside
        elif not inside:
            depth += (c in "[{") - (c in "]}")
            deepest = max(deepest, depth)
    return deepest


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(k for i, (k, _) in enumerate(pairs) if k in dict(pairs[:i]))
        raise ValueError(f"the key {twice!r} is written twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number that JSON can say; leave the key out, or write null")


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)
