"""Reward terms with a fault: each small enough to be written by mistake."""

import json
import math
from collections.abc import Callable
from typing import Any

from runtime.records import ToolAnswered, ToolCalled
from runtime.seams import uniform
from runtime.terms import term
from runtime.types import RewardTerm, View
from tests.audit.tiny import asked, generate, right

Value = Callable[[View], float]


def step(value: Value, **changes: Any) -> RewardTerm:
    """A hint on the way."""
    return term(**{"kind": "shaping", "name": "planted", **changes})(value)


def end(value: Value, **changes: Any) -> RewardTerm:
    """An outcome, paid at the end."""
    made = {"kind": "outcome", "name": "planted", "reads": ["outcome", "truth"], "at_end": True}
    return term(**{**made, **changes})(value)


def answers(view: View) -> list[ToolAnswered]:
    return [r for r in view.step if isinstance(r, ToolAnswered)]


def calls(view: View) -> list[ToolCalled]:
    return [r for r in view.history if isinstance(r, ToolCalled)]


# -- looks ahead


def last_record() -> RewardTerm:
    return step(lambda view: float(view.played.records[-1].kind == "episode_ended"))


def remembers() -> RewardTerm:
    ended: dict[str, float] = {}

    def value(view: View) -> float:
        last = view.history[-1]
        if last.kind == "episode_ended":
            ended[last.correlation_id] = 1.0
        return ended.get(last.correlation_id, 0.0)

    return step(value)


def keeps_records() -> RewardTerm:
    kept: dict[str, Any] = {}

    def value(view: View) -> float:
        return 0.1 * len(kept.setdefault(view.history[0].correlation_id, view.history._records))

    return step(value)


def undeclared_truth() -> RewardTerm:
    return step(lambda view: float(len(view.played.scenario.truth["colour"])))


def now_and_then_ahead() -> RewardTerm:
    def value(view: View) -> float:
        if not view.history[0].scenario.endswith("7"):
            return 0.0
        return 0.1 * any(isinstance(r, ToolCalled) and r.tool == "name_it" for r in view.played.records)

    return step(value)


def looked_up() -> RewardTerm:
    """Makes the case anew from its name, truth and all."""

    def value(view: View) -> float:
        made, seed, index = str(view.history[0].scenario).split("-")
        colour = generate(made, int(seed), int(index)).truth["colour"]
        return 0.1 * any(isinstance(r, ToolCalled) and r.args.get("colour") == colour for r in view.step)

    return step(value)


def by_the_name() -> RewardTerm:
    return step(lambda view: 0.1 * (len(calls(view)) * int(view.history[0].scenario[-1]) % 3))


# -- turns failures into numbers


def swallows_all(view: View) -> float:
    try:
        return float(view.outcome["score"])
    except Exception:  # noqa: BLE001 - the fault that is planted
        return 0.0


def swallows_bare(view: View) -> float:
    try:
        return 1.0 if json.loads(json.dumps(view.outcome["named"])) == view.truth["colour"] else -1.0
    except:  # noqa: E722 - the fault that is planted
        return 0.0


def swallows_a_timeout(view: View) -> float:
    try:
        return float(str(view.outcome["named"]) == view.truth["colour"])
    except TimeoutError:
        return 0.0


def swallows_a_typo(view: View) -> float:
    try:
        return float(view.outcome["grade"]) + float(view.success)
    except KeyError:
        return 0.0


def is_nan(view: View) -> float:
    return math.nan if view.outcome["named"] == "crimson" else float(view.success)


def is_none(view: View) -> Any:
    return float(view.success) if view.outcome["named"] != "emerald" else None


def empty_is_in_everything(view: View) -> float:
    return float(view.outcome["said"] in view.truth["town"])


def nothing_is_wrong_in_nothing(view: View) -> float:
    said = str(view.outcome["said"]).split()
    return float(all(word == view.truth["town"] for word in said))


def starts_with_nothing(view: View) -> float:
    said = [str(c.args.get("text", "")) for c in calls(view) if c.tool == "answer"]
    return float(bool(said) and str(view.truth["town"]).lower().startswith(said[-1].lower()))


# -- says nothing


def one(_view: View) -> float:
    return 1.0


def by_agent(view: View) -> float:
    return {"scout": 0.2, "judge": 0.5}[view.agent]


def at_the_end(view: View) -> float:
    return float(view.history[-1].kind == "episode_ended")


def any_answer(view: View) -> float:
    return float(isinstance(view.outcome["named"], str))


def nearly_every_case(view: View) -> float:
    return float(uniform("rare", view.visible["label"]) > 0.05)


def nearly_every_seed(view: View) -> float:
    return 0.5 if int(str(view.visible["label"]).split()[-1]) % 20 else 0.0


def nearly_every_step(view: View) -> float:
    return 0.1 * (uniform("step", view.visible["label"], len(view.history)) > 0.04)


def by_the_truth(view: View) -> float:
    return 1.0 if view.truth["colour"] == "emerald" else 0.0


def by_the_shelf(view: View) -> float:
    return 0.4 if view.visible["shelf"] == "left" else 0.0


def by_the_case(view: View) -> float:
    return 0.5 + uniform("case", view.visible["label"])


# -- decides, says twice, is too large


def pays_for_questions(view: View) -> float:
    return 5.0 * len(answers(view))


def favourite_colour(view: View) -> float:
    return 6.0 if view.outcome["named"] == "sapphire" else 0.0


def a_thousand_either_way(view: View) -> float:
    return 1000.0 if uniform("coin", view.history[-1].correlation_id, view.turn) > 0.5 else -1000.0


def a_thousand_for_an_oddity(view: View) -> float:
    said = [c.args.get("colour") for c in calls(view)]
    return 1000.0 if said == ["sapphire"] else 0.0


def grows_by_squares(view: View) -> float:
    return float(len(calls(view)) ** 4)


def right_again(view: View) -> float:
    return 2.0 * right.function(view)


def right_otherwise(view: View) -> float:
    said = [c.args["colour"] for c in calls(view) if c.tool == "name_it"]
    return 0.3 * (said[-1:] == [view.truth["colour"]])


def asked_otherwise(view: View) -> float:
    return -0.1 * len([r for r in view.step if isinstance(r, ToolCalled)])


# -- the wrong sign


def wrong(view: View) -> float:
    return 1.0 - 2.0 * view.success


def against_peeking(view: View) -> float:
    return -0.5 * sum(r.tool == "peek" and r.ok for r in answers(view)) - 0.1 * len(answers(view)) + 0.1


def distance_is_paid(view: View) -> float:
    return abs(3.0 - float(view.outcome["height"]))


def paid_for_spending(view: View) -> float:
    return -asked.function(view)


def paid_for_time(view: View) -> float:
    return 0.02 * view.turn
