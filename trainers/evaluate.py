"""Held-out evaluation with frozen policies, beside every baseline."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from scipy.stats import bootstrap

from assembly.build import Build
from policies.playing import Playable, RulePolicy
from runtime.records import Record
from runtime.seams import digest
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN, AgentId, ScriptedPolicy
from telemetry.scalars import AgentEvaluation, EvaluationReport
from trainers.measure import random_seats
from trainers.play import Played, play
from trainers.rllib.algorithm import make_adapter

RESAMPLES = 1000
"""Bootstrap resamples behind an interval: its ends are then good to 3% of its width (Efron and Tibshirani 1993)."""
BASELINE_EPISODES = 2000
"""Held-out episodes for a baseline whose return must be played out."""
SAMPLED = 8
"""Episodes whose records are kept from an evaluation."""
EVAL_SPLIT = "eval"
NO_TOOL = (HAND_OVER, HAND_BACK, PASS_TURN, "")
"""Calls that are none of a tool; the last is one that was malformed."""


@dataclass
class Tried:
    """How a set of held-out episodes went."""

    returns: list[float] = field(default_factory=list[float])
    successes: int = 0
    judged: int = 0
    """Episodes that say whether they were a success."""
    steps: int = 0
    cost_usd: float = 0.0
    missing: int = 0
    calls: Counter[tuple[AgentId, str]] = field(default_factory=Counter[tuple[AgentId, str]])
    invalid: Counter[AgentId] = field(default_factory=Counter[AgentId])
    by_agent: dict[AgentId, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    sampled: list[Sequence[Record]] = field(default_factory=list[Sequence[Record]])

    def add(self, played: Played) -> None:
        """Count an episode in."""
        self.steps += played.steps
        self.cost_usd += played.cost_usd()
        self.calls.update(played.calls())
        self.invalid.update(played.invalid())
        if math.isnan(played.team_return):
            self.missing += 1
        else:
            self.returns.append(played.team_return)
            for agent, value in played.returns.items():
                self.by_agent[agent].append(value)
        if played.success is not None:
            self.judged += 1
            self.successes += played.success
        if len(self.sampled) < SAMPLED and played.records:
            self.sampled.append(tuple(played.records))

    @property
    def episodes(self) -> int:
        """Episodes played."""
        return len(self.returns) + self.missing

    def tool_calls(self, agent: AgentId | None = None) -> float:
        """Calls of tools per episode, an agent's or everybody's; passing the case on is none."""
        used = sum(n for (a, tool), n in self.calls.items() if tool not in NO_TOOL and agent in (None, a))
        return used / max(1, self.episodes)

    def agent(self, agent: AgentId) -> AgentEvaluation:
        """One agent's part."""
        returns = self.by_agent[agent]
        return AgentEvaluation(
            return_mean=float(np.mean(returns)) if returns else None,
            tool_calls=self.tool_calls(agent),
            invalid_calls=self.invalid[agent] / max(1, self.episodes),
        )


@dataclass
class Purse:
    """What closing evaluations may still spend."""

    limit: float | None
    """US dollars; None: no limit."""
    spent: float
    """US dollars."""
    interrupted: Callable[[], bool]

    def empty(self, tried: Tried) -> bool:
        """Whether a try should end here."""
        return self.interrupted() or (self.limit is not None and self.spent + tried.cost_usd >= self.limit)

    def pay(self, tried: Tried) -> None:
        """Take what a try was billed."""
        self.spent += tried.cost_usd


def try_out(
    build: Build,
    seats: Mapping[AgentId, Playable],
    episodes: Iterable[int],
    enough: Callable[[Tried], bool] = lambda _: False,
) -> Tried:
    """Play held-out episodes with these policies, greedily; nothing that learns is touched.

    Args:
        build: the experiment.
        seats: who decides for each learning agent.
        episodes: which held-out episodes.
        enough: asked before each episode is opened; open ones are played to their end.
    """
    found = Tried()
    wanted = takewhile(lambda _: not enough(found), episodes)
    for played in play(lambda: make_adapter(build, EVAL_SPLIT), seats, wanted, seed=_eval_seed(build), greedy=True):
        found.add(played)
    return found


def _eval_seed(build: Build) -> int:
    """PettingZoo environments have no held-out scenarios: theirs are held-out seeds."""
    if build.team is not None:
        return build.experiment.seed
    return digest("held out", build.experiment.scenarios.eval.seed) % 2**31


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95% bootstrap percentile interval of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    if min(values) == max(values):
        return values[0], values[0]
    found = bootstrap(
        (np.asarray(values),),
        np.mean,
        n_resamples=RESAMPLES,
        batch=100,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True)
class Baselines:
    """What to compare with: mean returns, and intervals of those that were played."""

    returns: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    cost_usd: float = 0.0
    """What the tools were billed while they were played, US dollars."""

    def score(self, value: float | None) -> float | None:
        """(value − random) / (optimal or best baseline − random); None where there is nothing better than random."""
        if value is None or "random" not in self.returns:
            return None
        low = self.returns["random"]
        others = [v for n, v in self.returns.items() if n != "random"]
        high = self.returns.get("optimal", max(others, default=low))
        return (value - low) / (high - low) if high > low else None


def baselines(build: Build, episodes: int = BASELINE_EPISODES) -> Baselines:
    """Every baseline's return: exact where it can be computed, else played on the first held-out scenarios."""
    known = dict(build.team.baselines) if build.team else {}
    exact = build.exact_holds
    returns: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    held_out = range(min(episodes, build.held_out or episodes))
    to_play: dict[str, Mapping[AgentId, Playable]] = {}
    cost_usd = 0.0
    for name, baseline in known.items():
        if baseline.exact is not None and exact:
            returns[name] = baseline.exact()
        elif baseline.policies is not None and baseline.policies.keys() >= set(build.learners):
            to_play[name] = _ruled(baseline.policies, build.learners)
    if "random" not in returns:
        to_play["random"] = random_seats(build)
    for name, seats in to_play.items():
        tried = try_out(build, seats, held_out)
        cost_usd += tried.cost_usd
        if tried.returns:
            returns[name] = float(np.mean(tried.returns))
        interval = mean_interval(tried.returns)
        if interval:
            intervals[name] = interval
    return Baselines(dict(sorted(returns.items(), key=lambda item: item[1])), intervals, cost_usd)


def _ruled(policies: Mapping[AgentId, ScriptedPolicy], learners: Sequence[AgentId]) -> dict[AgentId, Playable]:
    return {a: RulePolicy(policies[a]) for a in learners}


def evaluation(tried: Tried, compared: Baselines) -> EvaluationReport:
    """The report of held-out episodes beside the baselines."""
    mean = float(np.mean(tried.returns)) if tried.returns else None
    return EvaluationReport(
        episodes=tried.episodes,
        return_mean=mean,
        return_ci95=mean_interval(tried.returns),
        score=compared.score(mean),
        success_rate=tried.successes / tried.judged if tried.judged else None,
        tool_calls=tried.tool_calls(),
        cost_usd=tried.cost_usd / max(1, tried.episodes),
        baselines=compared.returns,
        baselines_ci95=compared.intervals,
        agents={a: tried.agent(a) for a in sorted(tried.by_agent)},
    )
