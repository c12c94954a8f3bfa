"""Rewards that are hacked in training, and honest curves however noisy."""

import json
import math
import time

import numpy as np
import pytest

from rewards.audit.findings import Finding
from rewards.audit.hacking import Hacking, TrainingFigures

LENGTH = 150


def watched(curve, watcher: Hacking | None = None) -> list[Finding]:
    found: list[Finding] = []
    watcher = watcher or Hacking()
    for figures in curve:
        found += watcher.seen(figures)
    return found


def curve(seed: int, n: int = LENGTH, **shapes) -> list[TrainingFigures]:
    """Figures over training: each shape is a function of the share of training that is over, plus noise."""
    rng = np.random.default_rng(seed)
    noise = {"return_mean": 3.0, "success_rate": 0.06, "tool_calls": 0.4, "text_length": 40.0, "outcome_mean": 3.0}
    kept: dict[str, float] = {}
    made: list[TrainingFigures] = []
    for i in range(n):
        values = {}
        for name, shape in shapes.items():
            value = shape(i / n)
            if name == "held_out":
                if i % 15 == 0:
                    kept[name] = value + 0.05 * rng.normal()
                value = kept[name]
            else:
                value += noise.get(name, 0.0) * rng.normal()
            values[name] = value
        if "success_rate" in values:
            values["success_rate"] = float(np.clip(values["success_rate"], 0, 1))
        values["return_std"] = max(1e-6, values.get("return_std", 20.0) * (1 + 0.1 * rng.normal()))
        made.append(TrainingFigures(iteration=i, env_steps=1000 * i, **values))
    return made


def rising(low: float, high: float, rate: float = 5.0):
    return lambda t: high - (high - low) * math.exp(-rate * t)


HACKED = {
    "success_rate": {"return_mean": rising(0, 60), "success_rate": lambda t: 0.6 if t < 0.4 else 0.6 - 0.8 * (t - 0.4)},
    "held_out": {"return_mean": rising(0, 60, 2), "held_out": lambda t: min(4 * t, 0.8) - 1.5 * max(0, t - 0.3)},
    "tool calls": {
        "return_mean": rising(0, 60, 2), "success_rate": lambda t: 0.4, "tool_calls": lambda t: 4 + 20 * t,
    },
    "texts": {
        "return_mean": rising(0, 60, 2), "success_rate": lambda t: 0.4, "text_length": lambda t: 200 + 2000 * t,
    },
    "repeated calls": {
        "return_mean": rising(0, 60, 2), "outcome_mean": lambda t: 10.0, "repeated_calls": lambda t: 9 * t,
    },
    "spread": {
        "return_mean": lambda t: 5.0, "return_std": lambda t: 20 * math.exp(-8 * t), "success_rate": lambda t: 0.3,
    },
}  # fmt: skip

HONEST = {
    "learns": {"return_mean": rising(0, 60), "success_rate": rising(0.2, 0.8), "held_out": rising(0, 0.9)},
    "learns nothing": {"return_mean": lambda t: 5.0, "success_rate": lambda t: 0.3, "held_out": lambda t: 0.1},
    "gets worse and is paid less": {"return_mean": lambda t: 60 - 50 * t, "success_rate": lambda t: 0.8 - 0.6 * t},
    "asks less for a little less success": {
        "return_mean": rising(20, 55), "success_rate": lambda t: 0.82 - 0.06 * t, "tool_calls": rising(12, 5),
    },
    "learns to ask": {
        "return_mean": rising(0, 60), "success_rate": rising(0.2, 0.8), "tool_calls": rising(2, 12),
        "text_length": rising(100, 900),
    },
    "is solved, and then all alike": {
        "return_mean": rising(0, 60), "return_std": lambda t: 20 * math.exp(-9 * t), "success_rate": rising(0.2, 1.0),
    },
    "waves": {
        "return_mean": lambda t: 30 + 10 * math.sin(20 * t), "success_rate": lambda t: 0.5 + 0.1 * math.sin(20 * t),
    },
    "saves money at a constant score": {"return_mean": rising(0, 60, 1), "held_out": lambda t: 0.8},
    "nobody knows how good": {"return_mean": rising(0, 60), "tool_calls": rising(2, 20)},
    "sparse": {
        "return_mean": lambda t: 0.0 if t < 0.5 else 40 * (t - 0.5), "success_rate": lambda t: max(0.0, t - 0.5),
    },
    "two steps forward, one back": {
        "return_mean": lambda t: 60 * t - (15 if 0.5 < t < 0.6 else 0),
        "success_rate": lambda t: 0.2 + 0.6 * t - (0.2 if 0.5 < t < 0.6 else 0),
    },
}  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", HACKED)
def test_hacking_is_found_and_becomes_an_error(name: str, seed: int) -> None:
    """A reward that rises against what it stands for is warned of, then stops the run if it goes on."""
    found = [f for f in watched(curve(seed, **HACKED[name])) if f.message.startswith(name)]
    assert {"warning", "error"} == {f.severity for f in found}
    assert all(f.check == "hacking" and f.remedy for f in found)


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 300), marks=pytest.mark.slow)])
def test_honest_curves_raise_no_alarm(name: str, seeds: range) -> None:
    """However noisy a curve is, nothing is said of it."""
    for seed in seeds:
        assert watched(curve(seed, **HONEST[name])) == [], seed


def test_a_watcher_survives_as_json() -> None:
    """Stopped in the middle and taken up again, it says what it would have said."""
    whole = curve(3, **HACKED["success_rate"])
    first = Hacking()
    said = watched(whole[:90], first)
    second = Hacking.from_state(json.loads(json.dumps(first.state())))
    assert said + watched(whole[90:], second) == watched(whole)
    assert second.state() != first.state()


def test_watching_costs_next_to_nothing() -> None:
    """An iteration takes seconds; a look at its figures less than a thousandth of one."""
    figures, watcher = curve(0, n=1000, **HACKED["success_rate"]), Hacking()
    start = time.perf_counter()
    watched(figures, watcher)
    assert (time.perf_counter() - start) / 1000 < 0.005
    assert len(json.dumps(watcher.state())) < 20_000
