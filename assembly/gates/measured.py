"""What gates measured, each figure beside its threshold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One thing that was looked at."""

    what: str
    ok: bool
    value: float | None = None
    """None where what was looked at has no number."""
    unit: str = ""
    wanted: str = ""
    """The threshold in words, such as ``< 200 ms``."""
    note: str = ""
    """What went wrong, or how it was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A gate that was tried."""

    name: str
    """``L1``, ``L2`` or ``L3``."""
    promise: str
    measures: tuple[Measure, ...] = ()
    not_applicable: str = ""
    """Why it has nothing to measure here; empty where it was tried."""

    @property
    def ok(self) -> bool:
        """Nothing measured is beyond its threshold."""
        return all(m.ok for m in self.measures)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gates:
    """All gates of a run."""

    tried: tuple[Gate, ...]
    seconds: float
    """Wall time, s."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Each agent's expected reward per decision, in the terms' unit, as L3 took it."""

    @property
    def ok(self) -> bool:
        """Every gate is open."""
        return all(g.ok for g in self.tried)

    @property
    def reason(self) -> str:
        """What failed, in one line."""
        failed = [(g, m) for g in self.tried for m in g.measures if not m.ok]
        return "; ".join(f"{g.name}: {m.what}{f': {m.note}' if m.note else ''}" for g, m in failed)

    def state(self) -> dict[str, Any]:
        """As JSON, as ``gates.json`` keeps it."""
        return {
            "ok": self.ok,
            "seconds": self.seconds,
            "ranges": {a: list(r) for a, r in self.ranges.items()},
            "gates": [_gate(g) for g in self.tried],
        }


def _gate(gate: Gate) -> dict[str, Any]:
    measures = [{k: getattr(m, k) for k in Measure.__slots__} for m in gate.measures]
    plain: dict[str, Any] = {"name": gate.name, "promise": gate.promise, "ok": gate.ok, "measures": measures}
    return plain | ({"not_applicable": gate.not_applicable} if gate.not_applicable else {})
