"""What pay to expect: each payer's range in chance, expert and ask-everything play. Gates and alert rules read it."""

from collections.abc import Iterable
from dataclasses import dataclass

from rewards.audit.figures import Run, measured_players, payers, runs
from rewards.audit.material import Material
from runtime.types import AgentId

FEWEST = 100
"""Episodes of each player that a range rests on."""


@dataclass(frozen=True, slots=True)
class Range:
    """From the lowest to the highest value that was seen, in the pay's own unit."""

    low: float
    high: float
    steps: int
    """Values seen."""
    episodes: int

    @property
    def width(self) -> float:
        """High less low."""
        return self.high - self.low

    def beyond(self, value: float) -> float:
        """How far a value lies outside, 0 inside."""
        return max(self.low - value, value - self.high, 0.0)

    def far(self, value: float, share: float = 0.2) -> bool:
        """Whether a value lies outside by more than a share of the range; of its value, where it has no width."""
        return self.beyond(value) > share * (self.width or max(abs(self.low), abs(self.high))) + 1e-9


def expected_ranges(material: Material) -> dict[str, Range]:
    """The range of a step's pay by term, weights included; in a game by agent, as ``reward of AGENT``."""
    played = [r for p in measured_players(material) for r in runs(material, p, max(FEWEST, material.effort.episodes))]
    found = {p.name: range_of(played, p.name) for p in payers(material)}
    return {name: r for name, r in found.items() if r is not None}


def agent_ranges(material: Material) -> dict[AgentId, Range]:
    """The range of what each agent is paid for one step, all terms together: what ``agent.reward.value`` shows."""
    played = [r for p in measured_players(material) for r in runs(material, p, max(FEWEST, material.effort.episodes))]
    found: dict[AgentId, Range] = {}
    for agent in material.agents:
        values = [v for run in played for v in paid_to(run, agent, shared(material))]
        if values:
            found[agent] = Range(min(values), max(values), len(values), len(played))
    return found


def range_of(played: Iterable[Run], payer: str) -> Range | None:
    """From the lowest to the highest value of a payer; None if it paid nothing that is a number."""
    episodes = list(played)
    values = [p.value for r in episodes for p in r.pays.get(payer, ()) if p.value is not None]
    return Range(min(values), max(values), len(values), len(episodes)) if values else None


def shared(material: Material) -> set[str]:
    """Terms that pay every agent in full."""
    return {w.term.name for w in material.mix.terms if w.term.scope == "team"}


def paid_to(run: Run, agent: AgentId, to_all: set[str]) -> list[float]:
    """What one agent was paid at each step of a run; steps with missing pay are left out."""
    by_step: dict[int, float] = dict.fromkeys(range(run.steps), 0.0)
    for pays in run.pays.values():
        for pay in pays:
            if pay.value is None:
                by_step.pop(pay.step, None)
            elif pay.step in by_step and (pay.agent == agent or pay.term in to_all):
                by_step[pay.step] += pay.value
    return list(by_step.values())
