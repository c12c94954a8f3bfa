"""Teams whose world grades them, and graders that fail now and then; terms that read the grade."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.records import Json, ToolCalled
from runtime.seams import digest
from runtime.terms import term
from runtime.types import RewardTerm, Team, View
from tests.audit.tiny import Box, tiny
from tests.audit.zoo.hints import Value, end

Grades = Callable[[Box, bool], dict[str, Json]]
"""What the world's outcome says beside the name, and whether that was right."""


def graded(grades: Grades) -> Team:
    """The tiny team, graded."""

    class Graded(Box):
        def outcome(self) -> tuple[dict[str, Json], bool]:
            said, right = super().outcome()
            return {**said, **grades(self, right)}, right

    return tiny(world=Graded)


def away(box: Box) -> bool:
    """The grader fails in a quarter of the cases, whatever was done."""
    return digest("grader", box.scenario.id) % 4 == 0


def score_or(gap: Json) -> Grades:
    return lambda box, right: {"score": gap if away(box) else float(right)}


def score_if_there(box: Box, right: bool) -> dict[str, Json]:
    return {} if away(box) else {"score": float(right)}


def score_inside(box: Box, right: bool) -> dict[str, Json]:
    return {"grade": {"by": "model"} if away(box) else {"by": "model", "score": float(right)}}


def in_words(box: Box, right: bool) -> dict[str, Json]:
    return {"score": "n/a" if away(box) else str(float(right))}


def caught(view: View) -> float:
    try:
        return float(view.outcome["score"])
    except ValueError:
        return 0.0


def if_a_number(view: View) -> float:
    score = view.outcome["score"]
    return score if isinstance(score, float) else 0.0


GAPS: dict[str, tuple[Grades, Value]] = {
    "or nothing": (score_or(None), lambda v: v.outcome["score"] or 0.0),
    "by default nothing": (score_if_there, lambda v: v.outcome.get("score", 0.0)),
    "by default nothing, further inside": (score_inside, lambda v: v.outcome["grade"].get("score", 0.0)),
    "no number is a number": (score_or("nan"), lambda v: float(np.nan_to_num(float(v.outcome["score"])))),
    "if it is a number": (score_or({"error": "timeout"}), if_a_number),
    "words are nothing": (in_words, caught),
}
"""Graders that fail, and terms that pay nothing then."""


def _ask(place: str) -> float:
    if digest(place) % 2:
        raise KeyError(place)
    return 1.0


def behind_a_limit(view: View) -> float:
    """A helper that fails, and a time limit around both."""
    try:
        return _ask(str(view.visible["label"])) * view.success
    except KeyError:
        return 0.0


def raised_and_caught(view: View) -> float:
    try:
        if digest(view.visible["label"]) % 3 == 0:
            raise TypeError("the grader said something else")  # noqa: TRY301 - the fault that is planted
        return float(view.success)
    except TypeError:
        return 0.0


def never_there(view: View) -> float:
    """A misspelt field that no record has."""
    found = 0.0
    for record in view.history:
        try:
            found += record.anwser == "right"
        except AttributeError:
            continue
    return found + view.success


def limited(value: Value) -> RewardTerm:
    return end(value, timeout_s=5.0)


def _writes(part: Callable[[View], Any]) -> Value:
    def value(view: View) -> float:
        part(view)["note"] = view.truth["colour"]
        return float(view.success)

    return value


SWALLOWING: dict[str, RewardTerm] = {
    "behind a time limit": limited(behind_a_limit),
    "raised and caught": end(raised_and_caught),
    "a misspelt field": end(never_there),
    "a text for a number": end(lambda v: "1.0" if v.success else "0"),  # pyright: ignore
    "writes into the case": end(_writes(lambda v: v.visible)),
    "writes into the truth": end(_writes(lambda v: v.truth)),
}
"""Terms that fail, and pay, or would pay, all the same."""


# -- honest


def share(view: View) -> float:
    """Of nothing there is no share."""
    asked = sum(isinstance(r, ToolCalled) and r.tool != "name_it" for r in view.history)
    try:
        return float(view.success) / asked
    except ZeroDivisionError:
        return 0.0


PRICES = {"crimson": 1.0, "emerald": 0.8}


def priced(view: View) -> float:
    """What is in no list has the standard price."""
    try:
        price = PRICES[str(view.outcome["named"])]
    except KeyError:
        price = 0.5
    return price * view.success


def tried(view: View) -> float:
    """Records of many kinds, of which some have tools."""
    for record in view.step:
        try:
            tool = record.tool  # pyright: ignore
        except AttributeError:
            continue
        if tool == "peek":
            return 0.02
    return 0.0


def quick_where_solved(box: Box, right: bool) -> dict[str, Json]:
    return {"took": 1.0 + len(box.found) if right else None}


def quicker(view: View) -> float:
    """There is no time to a solution where there is none."""
    took = view.outcome["took"]
    return 0.0 if took is None else 1.0 / took


def distance(box: Box, right: bool) -> dict[str, Json]:
    """How far off the name was, where one was named."""
    return {"off": abs(len(box.named) - len(str(box.scenario.truth["colour"]))) if box.named else None}


def near(view: View) -> float:
    off = view.outcome["off"]
    return -10.0 if off is None else float(view.success) - off


@term(kind="shaping", name="planted")
def tried_on_the_way(view: View) -> float:
    return tried(view)


TRYING: dict[str, Value] = {"a share of nothing": share, "the standard price": priced}
GRADED: dict[str, tuple[Grades, Value]] = {
    "no time where nothing was solved": (quick_where_solved, quicker),
    "no distance where nothing was said": (distance, near),
    "a grade in words": (
        lambda box, right: {"grade": "good" if right else "bad"},
        lambda v: {"good": 1.0, "bad": 0.0}.get(str(v.outcome["grade"]), math.nan),
    ),
}
