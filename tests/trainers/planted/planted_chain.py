"""The supply-chain team with one fault planted, as a small change in a copy would plant it."""

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

from envs.supply_chain import team as honest
from runtime.records import Decided, ToolAnswered
from runtime.terms import term
from runtime.types import RewardTerm, Scenario, Team, View


def _cases(change: Callable[[Scenario, int], dict[str, Any]]) -> Callable[[], Team]:
    """Scenarios that show something more."""

    def planted() -> Team:
        made = honest()
        draw = made.generate
        assert draw is not None

        def generate(split: str, seed: int, index: int) -> Scenario:
            case = draw(split, seed, index)
            return dataclasses.replace(case, visible={**case.visible, **change(case, index)})

        return dataclasses.replace(made, generate=generate, exact_for=frozenset({"none"}))

    return planted


def _cause(case: Scenario) -> int:
    return sum(map(ord, str(case.truth["cause"])))


def _same_stream() -> Team:
    made = honest()
    draw = made.generate
    assert draw is not None
    return dataclasses.replace(made, generate=lambda split, seed, index: draw("train", 1, index))


RIGHT = {
    "supplier_delay": "expedite_supplier",
    "port_congestion": "reroute_port",
    "customs_hold": "file_customs_papers",
    "carrier_strike": "switch_carrier",
    "demand_spike": "raise_safety_stock",
}
"""The remedy of some causes; of the others a person decides."""


def _with(extra: RewardTerm) -> Callable[[], Team]:
    def planted() -> Team:
        made = honest()
        return dataclasses.replace(made, terms={**made.terms, "planted": extra})

    return planted


@term(kind="shaping", name="planted")
def reads_ahead(view: View) -> float:
    """Looks at whatever is the last record of the run behind the view."""
    last = view.played.records[-1]  # type: ignore[attr-defined]
    return 5.0 if getattr(last, "success", False) else float(len(view.played.records) % 3)  # type: ignore[attr-defined]


@term(kind="outcome", at_end=True, reads=("outcome", "truth"), name="planted")
def blank_is_right(view: View) -> float:
    """Pays for an answer that occurs in the right one: so does no answer at all."""
    said, right = (
        str(view.outcome.get("remedy") or ""),
        f"{RIGHT.get(str(view.truth['cause']), 'escalate_to_human')} at once",
    )
    return 50.0 if said in right else 0.0


@term(kind="shaping", scope="agent", name="planted")
def everybody_gets_it(view: View) -> float:
    """A bonus on a condition that nearly always holds."""
    return 3.0 if any(isinstance(r, Decided) for r in view.step) else 0.0


@term(kind="outcome", at_end=True, reads=("outcome",), name="planted")
def wrong_way_round(view: View) -> float:
    """Pays for failing."""
    return -80.0 if view.success else 80.0


@term(kind="outcome", at_end=True, reads=("outcome",), name="planted")
def swallowed(view: View) -> float:
    """A verifier that crashed pays nothing, as if the work were bad."""
    try:
        return 10.0 if view.outcome["verdict"]["right"] else 0.0
    except Exception:  # noqa: BLE001 - the fault that is planted
        return 0.0


@term(kind="shaping", name="planted")
def far_out(view: View) -> float:
    """A hint a thousand times as wide as anything else."""
    answers = [r for r in view.step if isinstance(r, ToolAnswered)]
    return 1000.0 * (1 if answers and len(str(answers[-1].value)) % 2 else -1)


PLANTED: dict[str, Callable[[], Team]] = {
    "base64": _cases(lambda c, k: {"token": base64.b64encode(str(c.truth["cause"]).encode()).decode()}),
    "id_grows": _cases(lambda c, k: {"ticket": 100_000 + _cause(c)}),
    "timestamp": _cases(lambda c, k: {"opened": f"2026-01-{1 + _cause(c) % 28:02d}T08:{k % 60:02d}:00"}),
    "list_length": _cases(lambda c, k: {"attachments": ["scan"] * (1 + _cause(c) % 9)}),
    "same_stream": _same_stream,
    "reads_ahead": _with(reads_ahead),
    "blank_is_right": _with(blank_is_right),
    "everybody_gets_it": _with(everybody_gets_it),
    "wrong_way_round": _with(wrong_way_round),
    "swallowed": _with(swallowed),
    "far_out": _with(far_out),
}


def team(fault: str) -> Team:
    return PLANTED[fault]()
