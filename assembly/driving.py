"""A team at work: its session, whoever decides in it, and what each step is paid."""

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from envs.session import Sampled, Session
from policies.playing import Choice, Playable, Turn
from runtime.types import AgentId, Judge, Observation


def seen(observation: Observation) -> dict[str, Any]:
    """An observation as policies get it from ``envs.TeamEnv``: ``text``, and ``action_mask`` (K,) int8."""
    return {"text": observation.text, "action_mask": np.asarray(observation.mask, np.int8)}


def turn_of(session: Session, agent: AgentId) -> Turn:
    """The agent's turn as a policy reads it."""
    observation = session.observe(agent)
    return Turn(agent, seen(observation), observation.key, observation.turn, lambda: session.observe(agent))


def told(session: Session, agent: AgentId, choice: Choice) -> None:
    """Tell the session what a model that was asked for a choice took."""
    if choice.spent is not None:
        session.asked(agent, choice.spent.fields())


class Driven:
    """Goes on one step at a time, so that several can be interleaved.

    Args:
        session: the team's session.
        seats: who decides for each agent.
        judge: pays each step; None pays nothing.
        greedy: the likeliest call, in place of one drawn.
    """

    def __init__(
        self, session: Session, seats: Mapping[AgentId, Playable], judge: Judge | None = None, *, greedy: bool = False
    ) -> None:
        self.session, self.seats, self._judge, self._greedy = session, seats, judge, greedy
        self.rewards: dict[AgentId, list[float]] = defaultdict(list[float])
        """What each decision was paid until the agent's next one, in the terms' unit; NaN where it is missing."""
        self.took: list[tuple[AgentId, float]] = []
        """Each decision, timed: choosing and carrying out, ms; in a simultaneous round carrying out is everybody's."""

    @property
    def to_act(self) -> tuple[AgentId, ...]:
        """Whose turn it is."""
        return self.session.to_act

    @property
    def over(self) -> bool:
        """Nobody is to act."""
        return not self.session.to_act

    def step(self) -> None:
        """Whoever is to act does; in a simultaneous round, everybody."""
        session, agents = self.session, self.session.to_act
        since = len(session.records)
        choices: dict[AgentId, Choice] = {}
        took: dict[AgentId, float] = {}
        for agent in agents:
            began = time.perf_counter()
            (choices[agent],) = self.seats[agent].decide([turn_of(session, agent)], self._greedy)
            took[agent] = time.perf_counter() - began
            told(session, agent, choices[agent])
        began = time.perf_counter()
        sampled = {a: Sampled(c.logp, c.probabilities) for a, c in choices.items()}
        if len(agents) == 1:
            session.act(agents[0], choices[agents[0]].action, sampled[agents[0]])
        else:
            session.act_all({a: c.action for a, c in choices.items()}, sampled)
        acted = time.perf_counter() - began
        self._pay(agents, since)
        self.took += [(a, 1000 * (took[a] + acted)) for a in agents]

    def _pay(self, agents: tuple[AgentId, ...], since: int) -> None:
        if self._judge is None:
            return
        paid = self._judge(self.session, since)
        self.session.note(paid.records)
        for agent in agents:
            self.rewards[agent].append(0.0)
        for agent, decisions in self.rewards.items():
            decisions[-1] += paid.to(agent)
