"""Are the scenarios reproducible, distinct, plain JSON, and is their truth kept out of what is visible?"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from envs.checks.findings import Finding, calling
from envs.checks.subject import Subject, a_scenario
from runtime.leaves import leaves
from runtime.records import Json
from runtime.tools import Contract
from runtime.types import Scenario, Team

LONG_TEXT = 12
"""Characters from which a text is no category any more: finding it elsewhere is no accident."""
_SEEDS = (1, 2)


def _wrong(message: str, where: str = "", remedy: str = "", check: str = "scenarios") -> Finding:
    return Finding(check, ok=False, message=message, where=where, remedy=remedy)


def scenarios(subject: Subject) -> Iterator[Finding]:
    """The same index makes the same scenario; ids are unique; everything is JSON and fits the declared types."""
    found = list(subject.scenarios())
    for scenario, index in zip(found, range(len(found)), strict=True):
        yield from _plain(scenario)
        if asdict(subject.scenario(index)) != asdict(scenario):
            yield _wrong("is another one when made again", f"scenario {index}", _KEYED)
    for name, count in Counter(s.id for s in found).items():
        if count > 1:
            yield _wrong(f"{count} scenarios have this id", f"scenario {name}", "make the id of split, seed and index")
    yield from _typed(subject.given, found)
    if subject.given.generate is not None:
        yield from _splits(subject.given, subject.episodes)


_KEYED = "draw from Random(digest(split, seed, index)), and from nothing else"


def _plain(scenario: Scenario) -> Iterator[Finding]:
    for side in ("visible", "truth"):
        value: Mapping[str, Json] = getattr(scenario, side)
        try:
            same = json.loads(json.dumps(dict(value), allow_nan=False)) == value
        except (TypeError, ValueError, RecursionError) as error:
            yield _wrong(
                f"its {side} part is not JSON: {error}", f"scenario {scenario.id}", "texts, numbers, lists, dicts"
            )
            continue
        if not same:
            message = f"its {side} part is another one when read back from JSON"
            yield _wrong(message, f"scenario {scenario.id}", "text keys, and lists in place of tuples")


def _typed(team: Team, found: Sequence[Scenario]) -> Iterator[Finding]:
    for side in ("visible", "truth"):
        schema = team.case_types.get(side)
        if schema is not None:
            problems = ((s.id, Contract(schema).problem(dict(getattr(s, side)))) for s in found)
            for name, problem in problems:
                if problem:
                    where = f"scenario {name}"
                    yield _wrong(
                        f"its {side} part breaks case_types: {problem[0]} at {problem[1]}", where, "correct one"
                    )
    for side in sorted(set(team.case_types) - {"visible", "truth"}):
        yield _wrong(f"{side!r} is neither visible nor truth", "case_types", "use these two keys")


def _splits(team: Team, episodes: int) -> Iterator[Finding]:
    assert team.generate is not None
    generate, made = team.generate, dict[tuple[str, int], list[Scenario]]()
    for split, seed in (("train", _SEEDS[0]), ("eval", _SEEDS[1]), ("eval", _SEEDS[0])):
        count = range(min(episodes, 20))
        doing = f"generating {split} scenarios"
        found = calling(doing, lambda: [generate(split, seed, k) for k in count])  # noqa: B023 - run at once
        made[split, seed] = [a_scenario(s, doing) for s in found]
    train = made["train", _SEEDS[0]]
    varied = len({_content(s) for s in train}) > 1
    for (split, seed), others in made.items():
        if others is train:
            continue
        if {s.id for s in train} & {s.id for s in others}:
            yield _wrong(
                f"training and {split} scenarios (seed {seed}) share ids", "generate", "put split and seed into the id"
            )
        if varied and [_content(s) for s in train] == [_content(s) for s in others]:
            yield _wrong(f"training and {split} scenarios (seed {seed}) are the same", "generate", _KEYED)


def _content(scenario: Scenario) -> tuple[str, int]:
    return json.dumps([dict(scenario.visible), dict(scenario.truth)], default=str, sort_keys=True), scenario.seed


# -- is the truth in what is visible?


def visible_truth(subject: Subject) -> Iterator[Finding]:
    """No truth stands among what is visible, as a value that goes along with it or as a text."""
    found = list(subject.scenarios())
    meant = subject.given.opening_reveals
    for key in sorted({k for s in found for k in s.truth} - meant):
        held = [(s, s.truth[key]) for s in found if key in s.truth]
        yield from _copied(key, held)
        yield from _quoted(key, held)


def _copied(key: str, held: Sequence[tuple[Scenario, Json]]) -> Iterator[Finding]:
    if len({json.dumps(v, default=str, sort_keys=True) for _, v in held}) < 2:
        return
    fields = [dict(leaves(dict(s.visible))) for s, _ in held]
    for path in fields[0]:
        if all(path in seen and seen[path] == value for seen, (_, value) in zip(fields, held, strict=True)):
            yield _wrong(
                f"truth.{key} stands in visible{path}",
                "scenarios",
                "take it out, or name it in opening_reveals",
                "hidden",
            )


def _quoted(key: str, held: Sequence[tuple[Scenario, Json]]) -> Iterator[Finding]:
    for scenario, value in held:
        shown = json.dumps(dict(scenario.visible), ensure_ascii=False, default=str)
        for _, text in leaves(value):
            if isinstance(text, str) and len(text) >= LONG_TEXT and json.dumps(text, ensure_ascii=False)[1:-1] in shown:
                message = f"the text of truth.{key} stands in what is visible"
                yield _wrong(message, f"scenario {scenario.id}", "take it out, or name it in opening_reveals", "hidden")


def texts(value: Json) -> list[tuple[str, str]]:
    """Every text in a value, with its path."""
    return [(path, leaf) for path, leaf in leaves(value) if isinstance(leaf, str)]
