"""The batched loop itself: open episodes, policies deciding together, rewards credited, trajectories closed."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ray.rllib.core.columns import Columns

from envs.session import Sampled
from runtime.errors import RepertoryError
from runtime.types import AgentId
from trainers.rllib.acting import Actor
from trainers.rllib.adapter import Adapter, Ending
from trainers.rllib.fragment import Arrays, Fragment, ModuleID, Rows, Trajectory, ordered, taken
from trainers.rllib.metrics import Finished, Tally
from trainers.rllib.slots import FEATURES, STATE, Slot
from trainers.rllib.stopwatch import Stopwatch

Opened = tuple[dict[AgentId, Any], dict[AgentId, dict[str, Any]]]
Open = Callable[[Adapter], Opened]
"""Resets an environment to the next episode: first observations and infos."""


class LostEnding(RepertoryError):
    """An episode is over, but how it ended for some agent cannot be told."""


@dataclass(frozen=True, slots=True)
class Quota:
    """When a call has enough."""

    steps: float
    """Env steps after which no episode is opened; where open ones are not finished, after which they are cut."""
    episodes: float
    finish: bool
    """Play the open episodes to their end."""


class Rollout:
    """Several environments and the policies that play in them."""

    def __init__(
        self,
        envs: Sequence[Adapter],
        actors: Mapping[ModuleID, Actor],
        mapping: Mapping[AgentId, ModuleID],
        central: Mapping[ModuleID, Mapping[AgentId, slice]],
    ) -> None:
        """``central`` says, for each module with a central critic, where each agent's features lie in its state."""
        self.envs, self.actors, self.mapping = envs, actors, mapping
        self.agents: tuple[AgentId, ...] = tuple(envs[0].seats)
        self.central = frozenset(central)
        self.slots: list[Slot | None] = [None] * len(envs)
        self.stopwatch = Stopwatch()
        self._codes = {a: i for i, a in enumerate(self.agents)}
        self._rows: dict[ModuleID, Rows] = defaultdict(Rows)
        self._place = next(iter(central.values()), {})
        self._size = max((at.stop for at in self._place.values()), default=0)

    def play(self, quota: Quota, tally: Tally, open_next: Open, explore: bool) -> Fragment:
        """Step all environments until there is enough, and hand over what came of it."""
        for actor in self.actors.values():
            actor.module.eval()
        while tally.steps < quota.steps or quota.finish:
            if tally.steps < quota.steps:
                self._fill(quota, tally, open_next)
            live = [s for s in self.slots if s is not None]
            if not live:
                break
            began = self.stopwatch.begin()
            self._decide(live, explore)
            timed = self.stopwatch.chosen(began)
            for i, slot in enumerate(self.slots):
                if slot is None:
                    continue
                if self._advance(slot, tally):
                    self.slots[i] = None
                if timed is not None:
                    self.stopwatch.done(slot.actions, timed)
                    timed = None
        return self._cut(tally)

    def _fill(self, quota: Quota, tally: Tally, open_next: Open) -> None:
        """Start an episode wherever none is open."""
        for i, slot in enumerate(self.slots):
            if slot is None and tally.opened < quota.episodes:
                observations, infos = open_next(self.envs[i])
                state = np.zeros(self._size, np.float32) if self._size else None
                self.slots[i] = Slot(self.envs[i], observations, infos, state)
                tally.opened += 1

    def _decide(self, live: Sequence[Slot], explore: bool) -> None:
        """Everybody who is to act decides: one batch a policy."""
        groups: dict[ModuleID, list[tuple[Slot, AgentId]]] = defaultdict(list)
        for slot in live:
            slot.actions = {}
            for agent in slot.observations:
                groups[self.mapping[agent]].append((slot, agent))
        seen = {mid: self.actors[mid].featurize([s.observations[a] for s, a in g]) for mid, g in groups.items()}
        if self._size:
            for mid, group in groups.items():
                self._remember([(s.state, a) for s, a in group], seen[mid])
        for mid, group in groups.items():
            observations = self._with_state(mid, seen[mid], [s.state for s, _ in group])
            keys = [(*s.infos[a]["key"], a, s.infos[a]["turn"]) for s, a in group] if explore else None
            columns, actions = self.actors[mid].act(observations, keys)
            self._tell(group, self.actors[mid], columns[Columns.ACTION_LOGP])
            first = self._rows[mid].add(columns, len(group))
            for row, ((slot, agent), action) in enumerate(zip(group, actions, strict=True), first):
                slot.actions[agent] = action
                slot.rows.setdefault(agent, []).append(row)

    def _tell(self, group: Sequence[tuple[Slot, AgentId]], actor: Actor, logp: Any) -> None:
        """Tell the first environment how its decisions came about: sampled episodes are its own."""
        for row, (slot, _) in enumerate(group):
            tell = getattr(slot.env.env.unwrapped, "sampled_as", None) if slot is self.slots[0] else None
            if tell is not None:
                tell(Sampled(float(np.sum(logp[row])), actor.probabilities(row)))  # a written call: all its tokens

    def _remember(self, group: Sequence[tuple[Any, AgentId]], arrays: Arrays) -> None:
        """Keep each agent's latest features in the state that central critics see."""
        for row, (state, agent) in enumerate(group):
            state[self._place[agent]] = arrays[FEATURES][row]

    def _with_state(self, mid: ModuleID, arrays: Arrays, states: Sequence[Any]) -> Arrays:
        return {**arrays, STATE: np.stack(states)} if mid in self.central else arrays

    def _advance(self, slot: Slot, tally: Tally) -> bool:
        """Take one env step; True when the episode is over."""
        slot.observations, rewards, terminated, truncated, slot.infos = slot.env.step(slot.actions)
        tally.steps += 1
        slot.length += 1
        for agent in slot.actions:
            tally.turns[agent] += 1
            slot.turns[agent] += 1
        for agent, reward in rewards.items():
            if reward:
                self._credit(slot, agent, reward, tally)
        if slot.env.ends:
            state = None if slot.state is None else slot.state.copy()
            for agent, ending in slot.env.ends.items():
                self._close(slot, agent, ending, state)
        over = terminated["__all__"] or truncated["__all__"]
        if over:
            self._finish(slot, tally)
        return over

    def _credit(self, slot: Slot, agent: AgentId, reward: float, tally: Tally) -> None:
        """Add a reward to the agent's latest decision. NaN is missing, which is not zero."""
        if math.isnan(reward):
            slot.missing += 1
            tally.missing += 1
            slot.incomplete = True
            return
        slot.returns[agent] += reward
        rows = slot.rows.get(agent)
        if rows:
            self._rows[self.mapping[agent]].rewards[rows[-1]] += reward

    def _close(self, slot: Slot, agent: AgentId, ending: Ending, state: Any) -> None:
        rows = slot.rows.pop(agent, None)
        if not rows:
            return
        if not ending.terminated and ending.last is None:
            raise LostEnding(f"{agent} was cut without a last observation, so its future cannot be valued")
        slot.closed.append((self.mapping[agent], Trajectory(agent, rows, ending.terminated, ending.last, state)))

    def _finish(self, slot: Slot, tally: Tally) -> None:
        if any(slot.rows.values()):
            left = ", ".join(a for a, rows in slot.rows.items() if rows)
            raise LostEnding(f"the episode is over, but {left} neither terminated nor was cut")
        self._hand_in(slot, tally)
        tally.episodes += 1
        if slot.incomplete:
            tally.dropped_episodes += 1
            return
        seconds = time.perf_counter() - slot.started
        tally.finished.append(Finished(slot.length, slot.returns, slot.turns, seconds, slot.env.team_return))

    def _hand_in(self, slot: Slot, tally: Tally) -> None:
        """Give the closed trajectories to the fragment; none of them, where a reward is missing."""
        for mid, trajectory in slot.closed:
            if slot.missing:
                tally.dropped_turns += len(trajectory.rows)
            else:
                self._rows[mid].done.append(trajectory)
        slot.closed, slot.missing = [], 0

    def _cut(self, tally: Tally) -> Fragment:
        """Put the rows into order; cut what is open, and carry over the decisions that wait for their reward."""
        rows = self._rows
        waiting: dict[ModuleID, list[tuple[Slot, AgentId, int]]] = defaultdict(list)
        for slot in self.slots:
            if slot is not None:
                for agent, row in self._cut_open(slot, tally):
                    waiting[self.mapping[agent]].append((slot, agent, row))
        bootstrap = self._bootstrap(rows)
        wholes = {mid: r.whole() for mid, r in rows.items()}
        self._rows = defaultdict(Rows)
        for mid, carried in waiting.items():
            self._carry(mid, wholes[mid], rows[mid], carried)
        columns = {m: ordered(wholes[m], r, bootstrap.get(m), self._codes) for m, r in rows.items() if r.done}
        return Fragment(columns, self.agents, tally.steps)

    def _cut_open(self, slot: Slot, tally: Tally) -> list[tuple[AgentId, int]]:
        """Close what an open episode has in this fragment; the decisions in it that wait for their reward."""
        waiting: list[tuple[AgentId, int]] = []
        state = None if slot.state is None else slot.state.copy()
        for agent, rows in slot.rows.items():
            if slot.missing or not rows:
                tally.dropped_turns += len(rows)
            elif agent in slot.observations:
                last = slot.observations[agent]
                slot.closed.append(
                    (self.mapping[agent], Trajectory(agent, rows, terminated=False, last=last, state=state))
                )
            else:
                waiting.append((agent, rows[-1]))
                if rows[:-1]:
                    begun = Trajectory(agent, rows[:-1], terminated=False, next_row=rows[-1])
                    slot.closed.append((self.mapping[agent], begun))
        slot.rows = {}
        self._hand_in(slot, tally)
        return waiting

    def _carry(
        self, mid: ModuleID, whole: Mapping[str, Any], old: Rows, carried: Sequence[tuple[Slot, AgentId, int]]
    ) -> None:
        """Move decisions that wait for their reward to the next fragment."""
        at = [row for _, _, row in carried]
        new = self._rows[mid]
        first = new.add({name: taken(column, np.asarray(at)) for name, column in whole.items()}, len(at))
        for row, (slot, agent, before) in enumerate(carried, first):
            new.rewards[row] = old.rewards[before]
            slot.rows[agent] = [row]

    def _bootstrap(self, rows: Mapping[ModuleID, Rows]) -> dict[ModuleID, Arrays]:
        """The last observations of the trajectories that were cut, featurized."""
        cut = {mid: r.cut() for mid, r in rows.items()}
        last = {mid: self.actors[mid].featurize([t.last for t in ts]) for mid, ts in cut.items() if ts}
        if self._size:
            for mid, arrays in last.items():
                self._remember([(t.state, t.agent) for t in cut[mid]], arrays)
        return {mid: self._with_state(mid, arrays, [t.state for t in cut[mid]]) for mid, arrays in last.items()}
