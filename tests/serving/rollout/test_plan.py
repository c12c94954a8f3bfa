"""A rollout's plan: as short as in the serving file, refused where it would not do what it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assembly.yaml_text import read
from serving.rollout.comparison import Comparison
from serving.rollout.judge import following
from serving.rollout.plan import Plan
from serving.rollout.trial import Decision, Trial


def plan(text: str) -> Plan:
    return Plan.model_validate(read(text).data)


def test_the_plan_of_a_serving_file_is_read() -> None:
    """Percent are shares; what is not said has a default."""
    made = plan("{steps: [1%, 5%, 25%, 100%], minimum_sessions: 200, watch: [reward, errors, invalid_calls, latency]}")
    assert made == Plan()
    assert made.steps == (0.01, 0.05, 0.25, 1.0)
    assert made.level == pytest.approx(0.0125)
    own = plan("{steps: [0.5, 100%], watch: [errors], errors: {tolerance: 0.02, margin: 0.1}, pinned: end}")
    assert (own.steps, own.errors.margin, own.pinned, own.level) == ((0.5, 1.0), 0.1, "end", 0.05)


def test_the_documentation_shows_the_defaults() -> None:
    """Every key of the plan in docs/rollout.md, but for how often it is looked."""
    page = (Path(__file__).parents[3] / "docs" / "rollout.md").read_text()
    shown = re.search(r"```yaml\nrollout:\n(.*?)```", page, re.DOTALL)
    assert shown
    made = plan(re.sub(r"^  ", "", shown[1], flags=re.MULTILINE))
    assert made == Plan()
    assert made.model_fields_set == set(Plan.model_fields) - {"every_s"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{steps: [5%, 1%, 100%]}", "must rise"),
        ("{steps: [1%, 5%]}", "end with 100%"),
        ("{steps: [one, 100%]}", "wants a share such as 5%"),
        ("{steps: [0%, 100%]}", "greater than 0"),
        ("{watch: []}", "at least one metric"),
        ("{watch: [errors, errors]}", "each once"),
        ("{watch: [speed]}", "'reward', 'errors', 'invalid_calls' or 'latency'"),
        ("{watch: [errors], latency: {tolerance: 1.2}}", "latency, which nobody watches"),
        ("{errors: {tolerance: 0.05, margin: 0.01}}", "above tolerance"),
        ("{reward: {low: 1, high: 0}}", "below high"),
        ("{alpha: 0.9}", "less than 0.5"),
        ("{minimum_session: 5}", "Extra inputs"),
        ("{pinned: forget}", "'finish', 'migrate' or 'end'"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(text: str, told: str) -> None:
    """With the reason."""
    with pytest.raises(ValidationError, match=told):
        plan(text)


def test_bounds_of_feedback_hold_whether_rewards_are_watched_or_not() -> None:
    """They are no setting of the judgement."""
    assert plan("{watch: [errors], reward: {low: 0, high: 1}}").reward.high == 1


@pytest.mark.parametrize(("ratio", "then"), [(0.01, 0.05), (0.03, 0.05), (0.05, 0.25), (0.25, 1.0), (1.0, 1.0)])
def test_the_next_step_is_the_first_above_the_share(ratio: float, then: float) -> None:
    """Also where somebody has set a share between two steps."""
    assert following(Plan(), ratio) == then


def test_a_trial_survives_a_restart_in_the_middle_of_a_comparison() -> None:
    """As JSON and back: the same trial, which goes on the same."""
    trial = Trial.begun("v2", "v1", 0.01, 5.0, Plan())
    reward: Comparison = trial.comparisons["reward"]
    for place in range(50):
        reward.add("baseline", float(place % 7))
        if place % 3 == 0:
            reward.add("canary", float(place % 5))
    trial.comparisons["errors"].add("canary", 1.0)
    trial.pending = Decision(action="step", why="enough", ratio=0.05)
    again = Trial.from_state(json.loads(json.dumps(trial.state())))
    assert again.pending == trial.pending

    def on(each: Trial) -> Any:
        each.comparisons["errors"].add("baseline", 0.0)
        each.comparisons["reward"].add("canary", 3.0)
        return each.state()

    assert on(again) == on(trial)
