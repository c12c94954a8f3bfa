"""The collapse alarm: says by name when a run has stopped learning, diverged, or learned to do nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from assembly.experiment import Collapse
from envs.tally import Tally
from runtime.types import AgentId, Team
from telemetry.scalars import IterationReport

IDLE_SHARE = 0.01
"""An agent whose tool calls are below this share of its decisions asks nothing any more."""
IDLE_ENTROPY = 0.05
"""Nat: below this it no longer tries anything else either."""
ROUNDING = 1e-6
"""How far below the best known return a mean of as many equal returns may lie by rounding, as a share of its size."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the alarm compares with."""

    to_beat: float | None
    """The best return of a baseline that plays by rule, in the terms' unit."""
    best: float | None
    """The best return that is known to be possible: the optimum, or that of the best baseline."""
    optional_tools: Mapping[AgentId, frozenset[str]]
    """Tools of each learning agent that it need not call to end its part."""


def expected(team: Team | None, learners: tuple[AgentId, ...], returns: Mapping[str, float]) -> Expected:
    """The comparison for a team and its baselines' returns."""
    by_rule = [v for n, v in returns.items() if n not in ("random", "optimal")]
    tools: dict[AgentId, frozenset[str]] = {}
    for agent in learners if team else ():
        role = team.role(agent) if team else None
        if role and team:
            tools[agent] = frozenset(t for t in role.tools if not team.tools[t].ends)
    best = max((v for n, v in returns.items() if n != "random"), default=None)
    return Expected(max(by_rule, default=None), best, {a: t for a, t in tools.items() if t})


@dataclass
class Alarm:
    """Watches every iteration; a reason must hold ``patience`` iterations in a row."""

    settings: Collapse
    expected: Expected
    since: dict[str, int] = field(default_factory=dict[str, int])
    """What is out of bounds now, and the iteration in which that began."""

    def look(self, report: IterationReport, tally: Tally) -> str | None:
        """Why the run should stop, or None."""
        reasons = self._reasons(report, tally)
        self.since = {name: self.since.get(name, report.iteration) for name in reasons}
        held = {name: report.iteration - began + 1 for name, began in self.since.items()}
        due = [n for n in reasons if held[n] >= self.settings.patience]
        return "; ".join(f"{reasons[n]} for {held[n]} iterations" for n in due) or None

    def began(self) -> int | None:
        """The iteration in which the oldest of the present troubles began."""
        return min(self.since.values(), default=None)

    def _solved(self, report: IterationReport, tally: Tally) -> bool:
        """Whether there is nothing left to learn: to stand still is then no collapse."""
        if tally.episodes and tally.successes == tally.episodes:
            return True
        best = self.expected.best
        if best is None or report.return_mean is None:
            return False
        return report.return_mean >= best - ROUNDING * max(1.0, abs(best))

    def _reasons(self, report: IterationReport, tally: Tally) -> dict[str, str]:
        found: dict[str, str] = {}
        solved = self._solved(report, tally)
        for agent, figures in report.agents.items():
            if figures.kl is not None and figures.kl > self.settings.kl:
                found[f"kl {agent}"] = (
                    f"the policy of {agent} moved by KL {figures.kl:.3g} nat an update (bound {self.settings.kl:g})"
                )
            if not solved and self._still(figures.entropy, report, agent):
                found[f"entropy {agent}"] = (
                    f"the policy of {agent} has entropy {figures.entropy:.2g} nat (bound {self.settings.entropy:g})"
                )
        found.update(self._idle(report, tally))
        spread = float(np.std(tally.returns)) if len(tally.returns) > 1 else None
        if not solved and spread is not None and spread < self.settings.reward_std:
            found["reward"] = (
                f"episode returns have standard deviation {spread:.2g} (bound {self.settings.reward_std:g})"
            )
        return found

    def _still(self, entropy: float | None, report: IterationReport, agent: AgentId) -> bool:
        if entropy is None or entropy >= self.settings.entropy:
            return False
        coefficient = self._coefficient(report, agent)
        return coefficient is not None and coefficient > 0

    def _coefficient(self, report: IterationReport, agent: AgentId) -> float | None:
        policies = report.policies
        if agent in policies:
            return policies[agent].entropy_coeff
        known = [p.entropy_coeff for p in policies.values() if p.entropy_coeff is not None]
        return min(known) if known else None

    def _idle(self, report: IterationReport, tally: Tally) -> dict[str, str]:
        bar = self.expected.to_beat
        if bar is None or report.return_mean is None or report.return_mean >= bar:
            return {}
        found: dict[str, str] = {}
        for agent, tools in self.expected.optional_tools.items():
            decisions = sum(n for (a, _), n in tally.calls.items() if a == agent)
            asked = sum(n for (a, t), n in tally.calls.items() if a == agent and t in tools)
            figures = report.agents.get(agent)
            quiet = figures is None or figures.entropy is None or figures.entropy < IDLE_ENTROPY
            if decisions and asked / decisions < IDLE_SHARE and quiet:
                found[f"idle {agent}"] = (
                    f"{agent} calls no tool any more, while the return {report.return_mean:.2f} stands below the "
                    f"{bar:.2f} of a rule that does (raise ppo.entropy_coeff at the start, or the batch size)"
                )
        return found
