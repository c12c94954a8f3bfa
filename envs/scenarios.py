"""Where scenarios come from: a team's generator, or a JSONL file."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from runtime.errors import TeamError
from runtime.records import Json
from runtime.seams import digest
from runtime.types import Scenario, Team


@dataclass(frozen=True, slots=True)
class Generated:
    """Scenario k of an endless, reproducible stream."""

    team: Team
    split: str
    """``train`` or ``eval``: part of the key, so that the two never meet."""
    seed: int
    count: int | None = None
    """Scenarios in all; None is no end."""

    def __call__(self, index: int) -> Scenario:
        """The scenario of that index. Raises TeamError if the team makes none."""
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


def read_scenarios(path: Path) -> list[Scenario]:
    """Scenarios of a JSONL file, one object a line: ``{"id"?, "visible": {…}, "truth": {…}, "seed"?}``.

    Raises:
        TeamError: a line is not such an object, or there is none; with line numbers.
    """
    problems: list[str] = []
    found: list[Scenario] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            try:
                found.append(_scenario(line, number, path.stem))
            except (ValueError, KeyError, TypeError) as error:
                problems.append(f"line {number}: {error}")
    if len({s.id for s in found}) < len(found):
        problems.append("two scenarios have the same id")
    if not found and not problems:
        problems.append("it holds no scenario")
    if problems:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise TeamError(f"{path}: {'; '.join(problems[:5])}{more}")
    return found


def _scenario(line: str, number: int, stem: str) -> Scenario:
    read: Json = json.loads(line)
    data = cast("dict[str, Json]", read) if isinstance(read, dict) else {}
    if not isinstance(data.get("visible"), dict) or not isinstance(data.get("truth"), dict):
        raise ValueError('a scenario is {"visible": {…}, "truth": {…}} with an optional "id" and "seed"')
    unknown = sorted(set(data) - {"id", "visible", "truth", "seed"})
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}")
    return Scenario(
        id=str(data.get("id", f"{stem}:{number}")),
        visible=data["visible"],
        truth=data["truth"],
        seed=int(data.get("seed", digest(stem, number) % 2**31)),
    )
