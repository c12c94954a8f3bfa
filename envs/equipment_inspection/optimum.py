"""The best expected return of the team, exactly, by dynamic programming; and that of the uniform random team.

Findings are independent given the fault, and what is shown at the start says nothing about it. So what a case is worth
depends only on the level of each sensor read and the trend of each history looked up. Tables are indexed by these, one
axis a sensor, 0 for "not known". Values are not normalized: each is multiplied with the probability of what is known,
which makes an expectation a sum over the next finding.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from envs.equipment_inspection.plant import FAULTS, ORDERS, PRIORITIES, Fault, Order, Plant, Priority, Triple

Floats = NDArray[np.float64]


def optimum(plant: Plant, offline: float) -> float:
    """Expected return of the best team, USD, for ``payoff``, ``downtime`` and ``tool_cost`` at weight 1."""
    prior_f = np.array([plant.faults.get(f, 0.0) for f in FAULTS])
    levels = [_known(s.level) for s in plant.sensors.values()]
    trends = [_known(s.trend) for s in plant.sensors.values()]
    before_rf = prior_f * _joint(levels)
    worth_fo = _worth(plant)
    after_hf = _joint(trends)
    analyst_r = np.array(
        [_analyst(after_hf * row_f, worth_fo, len(trends), plant.cost_usd.history) for row_f in before_rf]
    )
    return _inspector(analyst_r, before_rf.sum(1), len(levels), plant.cost_usd.read_sensor, offline)


def random_return(plant: Plant) -> float:
    """Expected return of the team that chooses uniformly among its legal calls, USD.

    Of n questions and the hand-over, a uniform chooser who never repeats himself asks each with probability 1/2.
    """
    prior_f = np.array([plant.faults.get(f, 0.0) for f in FAULTS])
    cost = plant.cost_usd
    asked = len(plant.sensors) * (cost.read_sensor + cost.history + cost.thresholds) / 2
    return float((prior_f @ _worth(plant)).mean()) - asked


def _worth(plant: Plant) -> Floats:
    """What each order at each priority brings against each fault, ``(F, O)``, USD."""
    orders: list[tuple[Order, Priority]] = [(o, p) for o in ORDERS if o in plant.orders for p in PRIORITIES]
    rows = [
        [plant.payoff(o, p, f) - plant.downtime(o, p) if f in plant.faults else 0.0 for o, p in orders] for f in FAULTS
    ]
    return np.array(rows)


def _known(table: Mapping[Fault, Triple]) -> Floats:
    """Likelihood of each finding, ``(4, F)``: row 0 is "not known", which is certain."""
    return np.array([[1.0, *table[f]] if f in table else [1.0, 0.0, 0.0, 0.0] for f in FAULTS]).T


def _joint(sensors: list[Floats]) -> Floats:
    """Likelihood of every combination of findings, ``(4^S, F)``, the last sensor's index running fastest."""
    joint_xf = np.ones((1, len(FAULTS)))
    for table_vf in sensors:
        joint_xf = (joint_xf[:, None, :] * table_vf[None, :, :]).reshape(-1, len(FAULTS))
    return joint_xf


def _analyst(weights_hf: Floats, worth_fo: Floats, sensors: int, cost: float) -> float:
    """Value of the case at its hand-over to the analyst, who asks for histories until the planner orders."""
    shape = (4,) * sensors
    stop_h = (weights_hf @ worth_fo).max(1).reshape(shape)
    mass_h = weights_hf.sum(1).reshape(shape)
    return _best_stop(stop_h, mass_h, cost, known=slice(1, 4))


def _inspector(handed_r: Floats, mass_r: Floats, sensors: int, cost: float, offline: float) -> float:
    """Value of the case at the start. A sensor found off-line (index 4) is as unknown as one that was not read."""
    stop = handed_r.reshape((4,) * sensors)
    mass = mass_r.reshape((4,) * sensors)
    chance = np.array([1.0, *(3 * [1 - offline]), offline])
    for axis in range(sensors):
        scale = chance.reshape([-1 if a == axis else 1 for a in range(sensors)])
        stop = np.take(stop, [0, 1, 2, 3, 0], axis) * scale
        mass = np.take(mass, [0, 1, 2, 3, 0], axis) * scale
    return _best_stop(stop, mass, cost, known=slice(1, 5))


def _best_stop(stop: Floats, mass: Floats, cost: float, known: slice) -> float:
    """Value of asking one question after another, each at most once, and stopping when it is best (backward induction).

    Args:
        stop: value of stopping, by what is known.
        mass: probability of what is known.
        cost: of a question, USD.
        known: the indices that a question's axis takes once it has been asked.
    """
    value = stop.copy()
    sensors = value.ndim
    for unknown in sorted(product((False, True), repeat=sensors), key=sum):
        here = tuple(0 if u else known for u in unknown)
        for axis in (a for a in range(sensors) if unknown[a]):
            asked = tuple(known if a == axis else x for a, x in enumerate(here))
            place = sum(not u for u in unknown[:axis])
            value[here] = np.maximum(value[here], value[asked].sum(place) - cost * mass[here])
    return float(value[(0,) * sensors])
